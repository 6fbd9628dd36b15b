import pytest

from cgnlearn.tables.knowledge import read_prior


def written(path, text):
    path.write_text(text)
    return path


def test_ranges_are_read_with_a_worth_of_20_where_none_is_given(tmp_path):
    path = written(tmp_path / "prior.csv", "feature,class,high,low,worth\nK,well,5.1,3.5,7\nNa,ill,150,130,\n")
    assert [tuple(each) for each in read_prior(path).ranges] == [
        ("well", "K", 3.5, 5.1, 7.0),
        ("ill", "Na", 130.0, 150.0, 20.0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class,feature,low\na,K,1\n", "there is no column 'high'"),
        ("class,feature,low,high,unit\na,K,1,2,mmol\n", "the column 'unit' is unknown"),
        ("class,feature,low,high\na,K,2,1\n", "goes from 2 to 1"),
        ("class,feature,low,high\na,K,few,1\n", "limits are numbers"),
        ("class,feature,low,high\na,K,,1\n", "line 2: the column 'low' has no value"),
        ("class,feature,low,high\n,K,0,1\n", "line 2: the column 'class' has no value"),
        ("class,feature,low,high,worth\na,K,0,1,0\n", "worth of 0"),
        ("class,feature,low,high\na,K,0,1\na,K,0,2\n", "line 3: class 'a' has another range for 'K'"),
    ],
)
def test_files_that_are_no_ranges(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_prior(written(tmp_path / "prior.csv", text))

import pytest

from cgnlearn.tables.knowledge import read_prior, read_summary


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


TABLE = (
    "class,feature,level,n,mean,sd\nill,K,,10,5,0.5\nwell,K,,20,4,0.4\n"
    "ill,sex,f,10,,\nwell,sex,f,12,,\nwell,sex,m,8,,\n"
)


def test_a_published_table(tmp_path):
    found = read_summary(written(tmp_path / "table1.csv", TABLE))
    assert found.schema.names == ("K", "sex")
    assert found.classes.tolist() == [10, 20]
    assert found.counts[0][:, 0].tolist() == [[10, 0], [12, 8]]
    assert (found.moments[0].origin + found.moments[0].mean)[0, :, 0].tolist() == [5, 4]
    assert found.moments[0].scatter[0, :, 0].tolist() == pytest.approx([9 * 0.25, 19 * 0.16])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("well,K,,20,4,0.4", "well,K,,21,4,0.4", "the counts of 'sex' in class 'well' add up to 20, but it has 21"),
        ("ill,K,,10,5,0.5", "ill,K,,10,,0.5", "line 2: a row has either a mean and an sd, or a level"),
        ("ill,K,,10,5,0.5", "ill,K,f,10,5,0.5", "line 2: a row has either a mean and an sd, or a level"),
        ("ill,sex,f,10", "well,sex,f,10", "line 5: class 'well' has another row for 'sex'"),
        ("ill,K,,10,5,0.5", "ill,K,,,5,0.5", "line 2: the column 'n' has no value"),
        ("ill,sex,f,10,,", "ill,Na,,9,140,3", "has 9 samples here and 10 before: features with missing values"),
        ("class,", "group,", "there is no column 'class'"),
    ],
)
def test_published_tables_that_do_not_add_up(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message):
        read_summary(written(tmp_path / "table1.csv", TABLE.replace(old, new)))

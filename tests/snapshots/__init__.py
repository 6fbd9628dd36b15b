"""What others rely on, as text: public signatures, and the fields of our types in model files."""

import inspect
import json
import re
import tempfile
import zipfile
from collections import defaultdict
from functools import cache, cached_property
from pathlib import Path

import cgnlearn
from cgnlearn.type_names import OURS, nodes
from tests.stored_models import stored_models

REQUESTS = re.compile("set_.*_request")  # scikit-learn makes them of the other methods' parameters


def signatures():
    """Every public name with its parameters and their defaults; of classes the public methods and properties too."""
    for name in cgnlearn.__all__:
        value = getattr(cgnlearn, name)
        yield f"{name}{parameters(value)}"
        if not inspect.isclass(value):
            continue
        ours = [kind for kind in value.__mro__ if kind.__module__.startswith("cgnlearn")]
        members = {member for kind in ours for member in vars(kind) if not member.startswith("_")}
        for member in sorted(members):
            if isinstance(inspect.getattr_static(value, member), property | cached_property):
                yield f"{name}.{member}"
            elif not REQUESTS.fullmatch(member) and callable(getattr(value, member)):
                yield f"{name}.{member}{parameters(getattr(value, member))}"


def parameters(value):
    try:
        signature = inspect.signature(value)
    except ValueError:  # an exception's
        return ""
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def stored_fields():
    """Every type of ours in model files with the fields that are stored of it."""
    fields = defaultdict(set)
    for tree in stored_schemas():
        for node in nodes(tree):
            if node.get("__module__") == OURS:
                has_fields = node["__loader__"] == "ObjectNode" and "key_types" in node["content"]
                fields[node["__class__"]] |= set(node["content"]["content"]) if has_fields else set()
    for name in sorted(fields):
        yield " ".join([f"{name}:", *sorted(fields[name])])


@cache
def stored_schemas():
    """The ``model.json`` of a file of each of the stored models."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.skops")
        schemas = []
        for _, model in stored_models():
            cgnlearn.save(model, path)
            with zipfile.ZipFile(path) as archive:
                schemas.append(json.loads(archive.read("model.json")))
    return schemas


FOLDER = Path(__file__).parent
SNAPSHOTS = {FOLDER / "signatures.txt": signatures, FOLDER / "stored_fields.txt": stored_fields}

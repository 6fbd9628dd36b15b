# Everything below sets itself up: Python 3.11+ and make are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
DEVELOPED := --editable '.[all]' --group test --group lint

.PHONY: demo test test-all test-oldest lint warm docs bench quality reproduction clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=25.1' uv  # the first pip that knows dependency groups; uv takes seconds where pip takes minutes
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(DEVELOPED) || $(PIP) $(DEVELOPED)
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(PIP) --group bench
	touch $@

demo: $(VENV)/.installed
	$(BIN)/cgnlearn demo

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

# Compiled code, ahead of the first fit.
warm: $(VENV)/.installed
	$(BIN)/python -m cgnlearn.warm

# Minutes, for every change; test-all has besides what takes long, and is for every merge.
# Processes fill the cores; threads of the linear algebra would only get in their way.
test test-all test-oldest: export OMP_NUM_THREADS = 1
test: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

test-all: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup

# The oldest versions that pyproject.toml states, in an environment of their own; their own warnings are not ours.
$(VENV)-oldest/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-oldest/bin/uv pip install --quiet --python $(VENV)-oldest/bin/python --resolution lowest-direct --editable '.[all]' --group test
	touch $@

test-oldest: $(VENV)-oldest/.installed
	$(VENV)-oldest/bin/python -m pytest -n auto --dist loadgroup -o filterwarnings=default -W ignore::DeprecationWarning --disable-warnings

$(VENV)/.docs: $(VENV)/.installed
	$(PIP) --group docs
	touch $@

# Warnings are errors; nothing is fetched. Open docs/_build/index.html.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going --quiet docs docs/_build

bench: $(VENV)/.bench
	$(BIN)/python bench/core.py
	$(BIN)/python bench/search.py
	$(BIN)/python bench/ordered.py
	$(BIN)/python bench/averaging.py
	$(BIN)/python bench/ovarian.py
	$(BIN)/python bench/spectra.py
	$(BIN)/python bench/tuning.py

# Ours beside tuned peers on fifty sets in DATA; hours, and gone on with where it was interrupted.
quality: $(VENV)/.bench
	$(BIN)/python bench/quality.py $(if $(DATA),--data-dir $(DATA)) -o results/quality --write

# The paper's experiments on the data in DATA (see `cgnlearn reproduce --help`), and the page about them.
reproduction: $(VENV)/.installed
	$(BIN)/cgnlearn reproduce uci $(if $(DATA),--data-dir $(DATA)) -o results
	$(BIN)/cgnlearn reproduce ovarian $(if $(DATA),--data-dir $(DATA)) -o results
	$(BIN)/python docs/reproduction/page.py results

clean:
	rm -rf $(VENV) $(VENV)-oldest docs/_build docs/gallery docs/reference

# Every target makes what it needs by itself and is quick when that exists.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Whatever the shell says: packages are compiled when they are first imported, and not again for each of many processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-all lint docs bench dist wheel clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

setup: $(INSTALLED) ## Make .venv with everything in it

# uv installs several times as fast as pip, and at once what it has installed before; where it cannot (it does not read
# pip's settings, a mirror of a company for instance), pip does it.
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable ".[dev]" || $(MAKE) --no-print-directory with-pip
	touch $@

# Of the two OpenCVs only that without windows stays, as uv is told in pyproject.toml.
.PHONY: with-pip
with-pip:
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	$(BIN)/python -m pip uninstall --quiet --yes opencv-python
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps opencv-python-headless

demo: $(INSTALLED) ## Run the built-in study and write its report, in about three minutes
	$(BIN)/suffice demo $(DEMO)

test: lint ## Check style and types, run tests and doctests but for the slow ones
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow"

test-all: lint ## Check style and types, run all tests and doctests
	$(BIN)/python -m pytest -q -n auto --dist worksteal

lint: $(INSTALLED) ## Check style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(INSTALLED) ## Build the documentation into docs/_build/html, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html $(SPHINX) docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench: $(INSTALLED) ## Measure the probe against the bare model on this machine
	$(BIN)/suffice bench probe --model timm/vit_tiny_patch16_224 --random-weights
	$(BIN)/suffice bench probe --model timm/resnet18 --random-weights

dist: $(INSTALLED) ## Build sdist and wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

# An environment of its own with nothing but the wheel in it. What suffice depends on is then taken from .venv: a path in
# a .pth file is searched, but the link to the source that lies there is not followed.
wheel: dist ## Install the wheel away from the source, and try it there
	rm -rf build/wheel
	$(BIN)/python -m venv --without-pip build/wheel
	$(BIN)/python -m pip --python build/wheel/bin/python install --quiet --no-deps --no-index dist/*.whl
	ls -d $(abspath $(VENV))/lib/python*/site-packages > $$(ls -d build/wheel/lib/python*/site-packages)/dependencies.pth
	cd build/wheel && bin/python -I -W error -c "import suffice"
	cd build/wheel && bin/python -I $(abspath tests)/wheel.py $(abspath suffice)
	cd build/wheel && env -u PYTHONPATH bin/suffice demo --networks resnet,deit --images 2 --out demo

clean: ## Remove everything that make made
	rm -rf $(VENV) dist build docs/_build docs/_generated demo-output suffice-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

# make demo    diagnose a small C++ extension library, built and run under torch and under Paddle
# make test    the tests
# make quick   the tests that need no framework and no compiler: half a minute
# make lint    format, lint, types, and which module may import which
# make check   lint and test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO ?= fixtures/muladd

.PHONY: demo test quick lint check install

demo: $(STAMP)
	$(BIN)/migrate-lens diagnose $(DEMO)

test: $(STAMP)
	$(BIN)/pytest -n 2

quick: $(STAMP)
	$(BIN)/pytest -n 2 -m "not real and not native"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

install: $(STAMP)

# The frameworks come first and with their versions, so that nothing after them can choose others.
$(STAMP): requirements/frameworks.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing both frameworks and migrate-lens into $(VENV); this takes some minutes"
	$(BIN)/python -m pip install -qq --requirement requirements/frameworks.txt
	$(BIN)/python -m pip install -qq --editable '.[dev]'
	@touch $@

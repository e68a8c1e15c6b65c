# Every target but oldest and clean-cache sets everything up in .venv first. tests/README.md describes the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
WORKERS ?= 2
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

unexport PYTHONDONTWRITEBYTECODE  # where it is set, as in many containers, each process compiles PyTorch's modules anew

.PHONY: compare test setup slow checked browser site bench perft strength lint exact-3x3 wheel clients oldest clean-cache

compare: $(VENV)/.players  ## play every kind of player and show a table with intervals, and plots, in results/quick
	$(BIN)/mergefall compare quick --out results/quick --workers $(WORKERS)

test: setup  ## the test suite, with examples in docstrings and pages
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore=tests/browser
	@echo "Left out: the page of mergefall report in a browser (make browser), and slow variants (make slow)."

setup: $(VENV)/.developers

$(VENV)/.players: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) with PyTorch, Stable-Baselines3, Numba and matplotlib: 1.3 GB, about a minute with a fast network."
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[train,render]"
	touch $@

$(VENV)/.developers: $(VENV)/.players
	@echo "Adding what developers need: pytest, ruff, pyright, Ray, nbmake."
	$(PIP) -e ".[dev]"
	touch $@

slow: setup  ## the tests that make test leaves out, whole notebooks included, but those on 3×3 (make exact-3x3): minutes
	MERGEFALL_SLOW=1 $(BIN)/python -m pytest -n $(WORKERS) -m slow tests
	$(BIN)/python -m pytest -n $(WORKERS) --nbmake notebooks

checked: export NUMBA_BOUNDSCHECK = 1
checked: setup  ## kernels that check bounds: the tests of environments and players, and 20,000 cases of hostile input
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile tests/envs tests/baselines
	WORKERS=$(WORKERS) $(BIN)/python tests/fuzz.py 20000

browser: setup  ## the page of `mergefall report`, and the site if it is built, in Chromium; apt installs it if there is none
	command -v chromium || (apt-get update && apt-get install -y --no-install-recommends chromium)
	$(BIN)/python -m pytest -n $(WORKERS) tests/browser

site: export PATH := $(abspath $(BIN)):$(PATH)
site: setup $(VENV)/.site  ## the documentation in build/site: pages, docstrings, figures, pictures and replays drawn anew; two minutes
	$(BIN)/python -m notebooks.site.pages
	$(BIN)/python -m sphinx -d build/site-doctrees -c notebooks/site -W --keep-going -q build/site-source build/site
	@echo "build/site/index.html"

$(VENV)/.site: $(VENV)/.players
	$(PIP) -e ".[site]"
	touch $@

lint: setup  ## style, layers, types and the workflows
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports && $(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/zizmor --offline --quiet .github

bench: setup  ## speed: ratios against other projects, measured in one run (they get an environment of their own)
	$(BIN)/python tests/benchmarks/bench.py

perft: setup  ## count move sequences against known counts
	$(BIN)/python tests/perft/perft.py tests/perft/*.txt tests/perft/long/*.txt

strength: setup  ## every documented player at its own depth; hours, resumes where it stopped
	$(BIN)/mergefall compare documented --out results/documented --workers $(WORKERS)

exact-3x3: setup  ## solve 3×3 exactly and check every known figure: ten minutes, 1.3 GiB of memory
	MERGEFALL_SLOW=1 $(BIN)/python -m pytest -s tests/baselines/game2048/test_solver.py

wheel: setup  ## build wheel and sdist, install each into an empty environment without extras, use it there
	$(BIN)/python tests/wheel.py

clients: setup  ## recipes against Stable-Baselines3, RLlib, TorchRL and others, each in an environment of its own
	$(BIN)/python tests/clients/run.py

oldest:  ## environments, players and the command with the oldest packages that they take, in an environment of its own
	test -x .oldest/bin/python || $(PYTHON) -m venv .oldest
	.oldest/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -c tests/oldest.txt -e ".[render]" hypothesis pytest pytest-xdist
	.oldest/bin/python -m pytest -n $(WORKERS) --dist loadfile tests/envs tests/baselines tests/training/test_cli.py

clean-cache:  ## drop compiled kernels
	find envs baselines training tests -name '*.nb[ic]' -delete

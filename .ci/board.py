"""Reads a Grafana dashboard with Grafana's own model of one, and complains about every field that the model does not know. Prints the
dashboard's queries as Prometheus rules, for promtool to read. Called by .ci/deploy."""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(path, given, kept):
    """Fields of `given` that are not in `kept`, or not as they were."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key in given:
            yield from lost(f"{path}.{key}", given[key], kept[key]) if key in kept else [f"{path}.{key} is no field of Grafana's"]
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for at, pair in enumerate(zip(given, kept)):
            yield from lost(f"{path}[{at}]", *pair)
    elif given != kept:
        yield f"{path} is {given!r}, and {kept!r} to Grafana"


def rules(board):
    """Each query as a recording rule, with Grafana's variables filled in."""
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    filled = [query.replace("$__rate_interval", "5m").replace("$job", "settled") for query in queries]
    return [{"record": f"board:query:{at}", "expr": query} for at, query in enumerate(filled)]


def main(file):
    register_default_plugins()
    with open(file, encoding="utf-8") as opened:
        board = json.load(opened)
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    complaints = list(lost("", board, known))
    print(*complaints, sep="\n", file=sys.stderr)
    # JSON is YAML
    print(json.dumps({"groups": [{"name": "board", "rules": rules(board)}]}))
    return 1 if complaints else 0


sys.exit(main(sys.argv[1]))

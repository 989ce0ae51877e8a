# SPDX-License-Identifier: Apache-2.0
"""What a recorded program holds now, sent to a collector of OpenTelemetry (OTLP over HTTP, as JSON):

    python -m gpumemtrace.opentelemetry PID|FILE [--every SECONDS]

Inside the program: ``gpumemtrace.opentelemetry.send()``. The collector is that of ``OTEL_EXPORTER_OTLP_ENDPOINT``, with the headers of
``OTEL_EXPORTER_OTLP_HEADERS``. No package is needed. The resource says whose run it is, as the columns of a lake do."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.parse
import urllib.request
from typing import Any, Dict, List, Mapping

from ._documents import Top
from ._error import Error
from ._program import recording
from ._tool import ask
from .prometheus import FIGURES, command, identity, samples

NAMES = {"host": "host.name", "user": "process.owner", "pid": "process.pid"}  # those of OpenTelemetry; ours are gpumemtrace.NAME
CUMULATIVE = 2
SECONDS = 10  # for an answer


class Unsent(Error):
    """The collector took nothing."""


def _attributes(of: Mapping[str, str]) -> List[Dict[str, Any]]:
    return [{"key": name, "value": {"intValue" if name == "process.pid" else "stringValue": value}} for name, value in of.items()]


def document(process: str) -> Dict[str, Any]:
    """The figures of a process id or a recording: an ExportMetricsServiceRequest."""
    now = Top._of(ask("top", process))
    found, when = samples(now), str(time.time_ns())
    metrics: List[Dict[str, Any]] = []
    for name, kind, unit, meaning in FIGURES:
        points = [{"attributes": _attributes(labels), "timeUnixNano": when, "asInt": str(value)} for labels, value in found[name]]
        data = {"sum": {"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": True}} if kind == "counter" else {
            "gauge": {"dataPoints": points}}
        metrics.append({"name": f"gpumemtrace.{name.replace('_total', '')}", "unit": unit, "description": meaning, **data})
    whose = {NAMES.get(name, f"gpumemtrace.{name}"): value for name, value in {**identity(now.run), "pid": str(now.pid)}.items()}
    resource = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "gpumemtrace"), **whose}
    return {"resourceMetrics": [{"resource": {"attributes": _attributes(resource)},
                                 "scopeMetrics": [{"scope": {"name": "gpumemtrace"}, "metrics": metrics}]}]}


def _request(body: bytes) -> urllib.request.Request:
    """As the variables of OpenTelemetry's own exporters say."""
    base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or "http://localhost:4318"
    url = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") or f"{base.rstrip('/')}/v1/metrics"
    headers = (pair.partition("=") for pair in os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",") if "=" in pair)
    if not url.startswith(("http://", "https://")):
        raise Error(f"{url} is no address of a collector: OTEL_EXPORTER_OTLP_ENDPOINT needs one such as http://localhost:4318", 2)
    return urllib.request.Request(url, body, {"Content-Type": "application/json", **{
        name.strip(): urllib.parse.unquote(value.strip()) for name, _, value in headers}})


def send(process: str = "") -> bool:
    """Sends the figures; without a process those of this program itself. False if that is not recorded."""
    process = process or recording() or ""
    if not process:
        return False
    request = _request(json.dumps(document(process)).encode())
    try:
        with urllib.request.urlopen(request, timeout=SECONDS):
            return True
    except OSError as error:
        raise Unsent(f"{request.full_url}: the collector took nothing: {getattr(error, 'reason', error)}", 3) from None


def send_or_say(options: Any) -> bool:
    """A collector that is away for a while ends nothing."""
    try:
        return send(options.process)
    except Unsent as error:
        if not options.every:
            raise
        print(f"gpumemtrace: {error.sentence}", file=sys.stderr)
        return True


if __name__ == "__main__":
    sys.exit(command("opentelemetry", "OpenTelemetry", send_or_say, "--every"))

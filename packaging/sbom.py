# SPDX-License-Identifier: Apache-2.0
"""What a release contains besides our own code, as CycloneDX 1.6 (JSON).

    packaging/sbom.py COMMIT    writes dist/gpumemtrace-VERSION.cdx.json

Its rows are those of sources.txt, from which the libraries are built.
"""

import datetime
import json
import os
import sys
import uuid

from wheel import read, version


def sources():
    for line in read("packaging/sources.txt").splitlines():
        if line and not line.startswith("#"):
            yield line.split()


def component(name, release, archive, checksum, _, licence):
    return {
        "type": "library",
        "bom-ref": f"{name}@{release}",
        "name": name,
        "version": release,
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": checksum}],
        "licenses": [{"license": {"id": licence}}],
        "purl": f"pkg:generic/{name}@{release}?checksum=sha256:{checksum}&file_name={archive.replace('+', '%2B')}",
    }


def document(commit):
    ours = f"gpumemtrace@{version()}"
    parts = [component(*row) for row in sources()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, ours + commit)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": "gpumemtrace",
                "version": version(),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": f"pkg:pypi/gpumemtrace@{version()}",
                "properties": [{"name": "commit", "value": commit}],
            },
        },
        "components": parts,
        "dependencies": [{"ref": ours, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


if __name__ == "__main__":
    path = f"dist/gpumemtrace-{version()}.cdx.json"
    with open(path + ".new", "w") as file:
        json.dump(document(sys.argv[1]), file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)
    print(f"sbom: {path}")

# The command line with the extras for a graph server and a cluster; all services but Neo4j.
FROM python:3.11.14-slim-bookworm AS wheel
WORKDIR /source
COPY . .
# a wheel, as the package's folders are links in a checkout
RUN PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
    pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11.14-slim-bookworm
COPY --from=wheel /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt \
      "$(ls /wheels/teller_rca-*.whl)[neo4j,cluster,ui]" \
    && rm -r /wheels \
    && useradd --uid 10001 --create-home teller \
    && install --directory --owner teller --group teller /workspace
USER teller
ENV TELLER_WORKSPACE=/workspace MPLCONFIGDIR=/tmp PYTHONUNBUFFERED=1
CMD ["teller", "--help"]

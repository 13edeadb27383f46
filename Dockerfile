# Built in one stage, served from another: no compiler, no pip and no sources in the image that serves.
#   docker build -t dragoman .
#   docker build -t dragoman --build-arg EXTRAS="onnx,databricks,images" .
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# Optional parts, comma separated: databricks, encryption, images, onnx, otel, postgres, redis; docs/dependencies.md.
ARG EXTRAS=""
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY config config
COPY providers providers
COPY translators translators
# The environment gets no pip of its own: the one outside installs into it, and compiles what it installs,
# since nothing can be written where it serves.
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheel . \
 && python -m venv --without-pip /opt/dragoman \
 && python -m pip --python /opt/dragoman/bin/python install --no-cache-dir "$(echo /wheel/*.whl)${EXTRAS:+[${EXTRAS}]}"

FROM python:${PYTHON}-slim
# Numbers, not names: an orchestrator that demands a user other than root can check a number only.
RUN python -m pip uninstall --yes --quiet --root-user-action=ignore pip \
 && groupadd --gid 10001 dragoman \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/dragoman \
            --shell /usr/sbin/nologin dragoman \
 && install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/dragoman
COPY --from=build /opt/dragoman /opt/dragoman
COPY deploy/healthcheck.py /opt/dragoman/healthcheck.py
ENV PATH=/opt/dragoman/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 XDG_STATE_HOME=/var/lib
# A dragoman.toml mounted here is found, any other place is named by DRAGOMAN_CONFIG; without a file, what the
# environment offers is served. Off loopback a key is required: DRAGOMAN_API_KEY, or api_keys in the file.
WORKDIR /etc/dragoman
# What must outlive the container: stored responses, the key of sealed reasoning, what backends refuse.
VOLUME /var/lib/dragoman
USER 10001:10001
EXPOSE 4000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --start-interval=1s \
  CMD ["python", "-I", "/opt/dragoman/healthcheck.py"]
# In exec form the gateway is process 1 and gets the signals itself. The port is said here because the
# command line wins over a file, and the health check asks this one.
ENTRYPOINT ["dragoman"]
CMD ["serve", "--host", "0.0.0.0", "--port", "4000"]

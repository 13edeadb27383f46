# Built in one stage, run in another: no pip, no compiler and no sources in the image that serves.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY config config
COPY providers providers
COPY translators translators
RUN python -m venv /opt/dragoman && /opt/dragoman/bin/pip install --no-cache-dir .

FROM python:3.13-slim
RUN useradd --system --no-create-home --shell /usr/sbin/nologin dragoman
COPY --from=build /opt/dragoman /opt/dragoman
ENV PATH=/opt/dragoman/bin:$PATH PYTHONUNBUFFERED=1
# A dragoman.toml mounted here is found; without one, credentials in the environment are. Off loopback a key is
# required: DRAGOMAN_API_KEY, or api_keys in the file.
WORKDIR /etc/dragoman
USER dragoman
EXPOSE 4000
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:4000/health', timeout=2)"]
ENTRYPOINT ["dragoman"]
CMD ["serve", "--host", "0.0.0.0"]

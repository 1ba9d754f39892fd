# The server as one static program in an image that holds nothing else. It needs a Postgres with pgvector: see
# docker-compose.yml.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The version that the program prints; empty: that of the source.
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -tags=grpcnotrace -ldflags="-s -w -X main.built=$VERSION" -o /image/loci ./cmd/loci
# Uploads are spooled to /tmp; the certificates are for embeddings endpoints behind TLS.
RUN mkdir -p /image/tmp /image/etc/ssl/certs \
    && chmod 1777 /image/tmp \
    && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
    && echo 'loci:x:65532:65532:Loci:/tmp:/loci' >/image/etc/passwd

FROM scratch
ARG VERSION=
LABEL org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.title="Loci" \
      org.opencontainers.image.description="A memory server for AI agents on Postgres with pgvector" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image/ /
USER 65532:65532
ENV LOCI_ADDR=0.0.0.0:8283
EXPOSE 8283
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 CMD ["/loci", "health"]
ENTRYPOINT ["/loci"]
CMD ["serve"]

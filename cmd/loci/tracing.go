package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/loci-memory/loci/server/rest"
)

// tracing sends spans of requests, jobs, statements and model calls to the collector that OpenTelemetry's standard
// variables name. Without a collector it is nil, and nothing is sent.
type tracing struct{ *sdktrace.TracerProvider }

// newTracing returns the tracing that an environment configures. A settingError if it asks for something that Loci
// cannot do.
func newTracing(ctx context.Context, log *slog.Logger, lookup func(string) string) (*tracing, error) {
	endpoint := cmp.Or(lookup("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), lookup("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if endpoint == "" || lookup("OTEL_TRACES_EXPORTER") == "none" ||
		strings.EqualFold(lookup("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	for _, v := range []struct{ name, value, honoured string }{
		{"OTEL_TRACES_EXPORTER", lookup("OTEL_TRACES_EXPORTER"), "otlp"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", cmp.Or(lookup("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
			lookup("OTEL_EXPORTER_OTLP_PROTOCOL")), "http/protobuf"},
		{"OTEL_PROPAGATORS", lookup("OTEL_PROPAGATORS"), "tracecontext,baggage"},
	} {
		if v.value != "" && v.value != v.honoured {
			return nil, settingError{fmt.Errorf("%s is '%s'; Loci knows %s only: unset it, or set OTEL_SDK_DISABLED to true",
				v.name, v.value, v.honoured)}
		}
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, settingError{fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT is '%s'; it must be a URL such as "+
			"http://localhost:4318", endpoint)}
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, settingError{fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)}
	}
	attributes, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "loci"),
		attribute.String("service.version", version())), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, settingError{fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)}
	}
	otel.SetErrorHandler(onceAMinute(log))
	return &tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(attributes))}, nil
}

// onceAMinute returns a handler that logs at most one error a minute, because errors come every few seconds while a
// collector is away.
func onceAMinute(log *slog.Logger) otel.ErrorHandler {
	var mu sync.Mutex
	var last time.Time
	return otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) > time.Minute {
			last = time.Now()
			log.Warn("spans cannot be sent to the collector (OTEL_EXPORTER_OTLP_ENDPOINT)", "error", err)
		}
	})
}

// flushTimeout bounds how long the last spans may take to be sent when the server stops.
const flushTimeout = 4 * time.Second

// close sends the remaining spans.
func (t *tracing) close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	_ = t.Shutdown(ctx) // the error handler has logged the error
}

// statements returns a tracer for statements inside of spans, without their arguments; nil without tracing.
func (t *tracing) statements() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(t), otelpgx.WithDisableAcquireTracer(),
		otelpgx.WithDisableConnectionDetailsInAttributes())
}

// requests returns a handler that opens a span for each request, except health checks and metrics.
func (t *tracing) requests(handler http.Handler) http.Handler {
	if t == nil {
		return handler
	}
	context := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	return otelhttp.NewHandler(handler, "request", otelhttp.WithTracerProvider(t), otelhttp.WithPropagators(context),
		otelhttp.WithFilter(func(r *http.Request) bool { return !rest.Watches(r.URL.Path) }))
}

// jobs returns middleware that opens a span for each job; none without tracing.
func (t *tracing) jobs() []rivertype.Middleware {
	if t == nil {
		return nil
	}
	return []rivertype.Middleware{river.WorkerMiddlewareFunc(
		func(ctx context.Context, job *rivertype.JobRow, work func(context.Context) error) error {
			ctx, span := t.Tracer("loci").Start(ctx, "job "+job.Kind, trace.WithSpanKind(trace.SpanKindConsumer))
			err := work(ctx)
			endSpan(span, err)
			return err
		})}
}

// startSpan opens a span inside the span of ctx. It does nothing if ctx has no span.
func startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer("loci").Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindClient))
}

// endSpan closes a span with the outcome of its work.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

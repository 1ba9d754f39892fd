package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/loci-memory/loci/embed/provider"
)

const testKey = "sk-test-0123456789abcdef"

// endpoint returns the endpoint of a model at a URL, with three attempts and no pauses.
func endpoint(url string) *provider.Endpoint {
	return &provider.Endpoint{
		Kind:           "embedding",
		Setting:        "LOCI_EMBEDDING",
		Answers:        "embeddings",
		BaseURL:        url,
		APIKey:         testKey,
		Model:          "m",
		Attempts:       3,
		Timeout:        time.Minute,
		MaxAnswerBytes: 1 << 20,
		FirstPause:     time.Nanosecond,
		Refuses:        func(_ int, body string) bool { return strings.Contains(body, "too long") },
	}
}

// ask requests an embedding. It returns the explained error and the pause that the provider asked for.
func ask(ctx context.Context, e *provider.Endpoint) (after time.Duration, err error) {
	client, err := e.Client()
	if err != nil {
		return 0, err
	}
	_, err = client.CreateEmbeddings(provider.WithRetryAfter(ctx, &after),
		openai.EmbeddingRequestStrings{Input: []string{"text"}, Model: "m"})
	if err != nil {
		err = e.Explain(ctx, err)
	}
	return after, err
}

// answer returns a handler that answers with a status and a body. headers are name, value, name, value, …
func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// hang answers only when its client is gone. A server notices that only after it has read the request.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

const good = `{"object": "list", "data": [{"index": 0, "embedding": [1]}]}`

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		handler  http.HandlerFunc
		requests int64
		want     string // of the error; empty if there is none
		setting  bool   // the error is a *SettingError
	}{
		{"a good answer is returned", answer(200, good), 1, "", false},
		{"an error is retried until the attempts are used up", answer(500, "oh"), 3,
			"fails (status 500: oh): try again later", false},
		{"a conflict is retried", answer(409, "busy"), 3, "status 409: busy", false},
		{"a timeout of the provider is retried", answer(408, "slow"), 3, "status 408: slow", false},
		{"a limit is retried", answer(429, `{"error": {"message": "too many"}}`, "Retry-After-Ms", "1"), 3,
			"takes no more requests for now (status 429: too many): try again later, or raise the limit of the key", false},
		{"a limit for an hour is left to the caller", answer(429, "", "Retry-After", "3600"), 1, "status 429", false},
		{"a bad request is not retried", answer(400, `{"error": {"message": "no"}}`), 1, "status 400: no", false},
		{"a refusal of the request is not retried, whatever its status", answer(500, "the input is too long"), 1, "too long",
			false},
		{"a wrong key names its setting", answer(401, "{}"), 1,
			"does not accept the key (status 401): check LOCI_EMBEDDING_API_KEY", true},
		{"a forbidden key names its setting", answer(403, "{}"), 1, "status 403", true},
		{"a wrong path names its settings", answer(404, "no such page"), 1,
			"(status 404: no such page): check LOCI_EMBEDDING_BASE_URL, which mostly ends in /v1, and LOCI_EMBEDDING_MODEL (m)",
			true},
		{"a redirect is not followed", answer(302, "", "Location", "/elsewhere"), 1,
			"redirects elsewhere: set LOCI_EMBEDDING_BASE_URL", true},
		{"an answer that is too big is not read", answer(200, strings.Repeat(" ", 1<<20+1)), 1,
			"answers with more than the 1048576 bytes that an answer may have", false},
		{"an answer of the largest size is read", answer(200, good+strings.Repeat(" ", 1<<20-len(good))), 1, "", false},
		{"a page is no answer", answer(200, "<html>"), 1, "answers with something else than embeddings", false},
		{"an answer that breaks off is retried", answer(200, good, "Content-Length", "1000"), 3, "cannot be reached", false},
		{"the key is not repeated", answer(418, "you said "+testKey), 1, "status 418: you said [key]", false},
		{"a long reason is cut", answer(418, strings.Repeat("é", 1000)), 1, "status 418: " + strings.Repeat("é", 300) + "…)",
			false},
		{"a reason is one line of valid UTF-8", answer(418, "a\n\nb\xff"), 1, "status 418: a b\uFFFD", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if body, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(body), `"text"`) ||
					r.Header.Get("Authorization") != "Bearer "+testKey || r.URL.Path != "/v1/embeddings" {
					t.Errorf("request %d is %s with %q (%v)", requests.Load(), r.URL, body, err)
				}
				c.handler(w, r)
			}))
			defer server.Close()
			_, err := ask(t.Context(), endpoint(server.URL+"/v1/"))
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), testKey) {
				t.Errorf("the error %q holds the key", err)
			}
			if _, setting := errors.AsType[*provider.SettingError](err); setting != c.setting {
				t.Errorf("the error %v is one of a setting: %v, want %v", err, setting, c.setting)
			}
			if n := requests.Load(); n != c.requests {
				t.Errorf("got %d requests, want %d", n, c.requests)
			}
		})
	}
}

func TestHangingServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(hang))
	defer server.Close()
	e := endpoint(server.URL)
	e.Timeout = time.Millisecond
	if _, err := ask(t.Context(), e); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "does not answer within 1ms") {
		t.Errorf("past an attempt's time: got %v", err)
	}
	e.Timeout = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := ask(ctx, e); err != context.DeadlineExceeded { //nolint:errorlint // the caller's own, bare
		t.Errorf("past the caller's time: got %v", err)
	}
}

// transport answers requests in memory, so that a test's clock stands still during a request.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// recorded returns an endpoint with the handler as its server, and the times of its requests.
func recorded(handler http.HandlerFunc) (*provider.Endpoint, *[]time.Time) {
	e, times := endpoint("http://127.0.0.1/v1"), new([]time.Time)
	e.FirstPause = 0
	e.HTTP = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		*times = append(*times, time.Now())
		w := httptest.NewRecorder()
		handler(w, r)
		return w.Result(), nil
	})}
	return e, times
}

func TestPausesBetweenAttempts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		status  int
		headers func(now time.Time) []string
		want    []time.Duration // the longest pauses; exact if asked is set
		asked   bool
	}{
		{"seconds", 429, func(time.Time) []string { return []string{"Retry-After", "3"} },
			[]time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}, true},
		{"milliseconds, which win", 503, func(time.Time) []string {
			return []string{"Retry-After", "3", "Retry-After-Ms",
				"250.5"}
		},
			[]time.Duration{250500 * time.Microsecond, 250500 * time.Microsecond, 250500 * time.Microsecond}, true},
		{"a date", 503, func(now time.Time) []string {
			return []string{"Retry-After", now.Add(5 * time.Second).UTC().Format(http.TimeFormat)}
		}, []time.Duration{5 * time.Second, 0, 0}, true},
		{"nothing", 500, func(time.Time) []string { return nil },
			[]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
				8 * time.Second}, false},
		{"nonsense", 429, func(time.Time) []string { return []string{"Retry-After", "soon"} },
			[]time.Duration{500 * time.Millisecond}, false},
		{"less than nothing", 429, func(time.Time) []string { return []string{"Retry-After", "-5"} },
			[]time.Duration{500 * time.Millisecond}, false},
		{"no number", 429, func(time.Time) []string { return []string{"Retry-After-Ms", "NaN"} },
			[]time.Duration{500 * time.Millisecond}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				headers := c.headers(time.Now())
				e, times := recorded(answer(c.status, "", headers...))
				e.Attempts = len(c.want) + 1
				if _, err := ask(t.Context(), e); err == nil {
					t.Error("got no error")
				}
				var got []time.Duration
				for i := 1; i < len(*times); i++ {
					got = append(got, (*times)[i].Sub((*times)[i-1]))
				}
				within := func(got, want time.Duration) bool { return got <= want && (got == want || !c.asked && got >= want/2) }
				if len(got) != len(c.want) || !slices.EqualFunc(got, c.want, within) {
					t.Errorf("got pauses %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestThePauseAskedForIsReturned(t *testing.T) {
	t.Parallel()
	e, times := recorded(answer(429, "", "Retry-After", "120"))
	after, err := ask(t.Context(), e)
	if after != 2*time.Minute || err == nil || len(*times) != 1 {
		t.Errorf("got %v (%v) after %d requests, want 2 min after one", after, err, len(*times))
	}
}

// A pause that is longer than the context is not waited for: the failure's reason says more than the end of the
// context.
func TestAPauseBeyondTheContextsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		e, times := recorded(answer(503, "down for repairs", "Retry-After", "3"))
		if _, err := ask(ctx, e); err == nil || !strings.Contains(err.Error(), "down for repairs") || len(*times) != 1 {
			t.Errorf("got %v after %d requests", err, len(*times))
		}
	})
}

func TestTheContextEndsWithinAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		e, times := recorded(answer(503, "down", "Retry-After", "20"))
		began := time.Now()
		time.AfterFunc(time.Second, cancel)
		if _, err := ask(ctx, e); !errors.Is(err, context.Canceled) || len(*times) != 1 || time.Since(began) != time.Second {
			t.Errorf("got %v after %d requests and %v", err, len(*times), time.Since(began))
		}
	})
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		url, model, key string
		want            string
	}{
		{"no scheme", "localhost:11434/v1", "m", "", "LOCI_EMBEDDING_BASE_URL is not a URL"},
		{"another scheme", "ftp://localhost/v1", "m", "", "LOCI_EMBEDDING_BASE_URL is not a URL"},
		{"a password that is no URL", "http://user:pass word@[::1", "m", "", "LOCI_EMBEDDING_BASE_URL is not a URL"},
		{"no model", "http://localhost/v1", " ", "",
			"LOCI_EMBEDDING_MODEL is empty: name the model that the embedding provider serves"},
		{"a key of two lines", "http://localhost/v1", "m", testKey + "\n" + testKey,
			"LOCI_EMBEDDING_API_KEY has a line break"},
		{"OpenAI's own", "", "m", testKey, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := endpoint(c.url)
			e.Model, e.APIKey = c.model, c.key
			_, err := e.Client()
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "pass word") || strings.Contains(err.Error(), testKey)) {
				t.Errorf("the error %q holds a secret", err)
			}
			if err == nil && e.Host() != "api.openai.com" {
				t.Errorf("got host %s", e.Host())
			}
		})
	}
}

// Organizations read a provider's words, but nothing in them that may be a key or an address.
func TestPlainHidesKeysAndAddresses(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"The model is overloaded, try again in 20 seconds.": "The model is overloaded, try again in 20 seconds.",
		"max_tokens is too large: 5000":                     "max_tokens is too large: 5000",
		"The model `qwen-2.5:7b` does not exist":            "The model `qwen-2.5:7b` does not exist",
		"sk-hidden-7f3a at gpu-7.internal.example":          "",
		"Rate limit reached for org-4kJ2x at gpu7:8080":     "Rate limit reached for … at …",
		"set LOCI_LLM_MODEL to http://10.0.0.7/v1":          "set … to …",
		`{"error":{"message":"no room left"}}`:              "no room left",
		`{"error":"the queue is full"}`:                     "the queue is full",
		`{"code":17}`:                                       "",
		"<html><body>502 Bad Gateway</body></html>":         "",
		strings.Repeat("word ", 100):                        strings.Repeat("word ", 24) + "…",
	} {
		if got := provider.Plain(message, "qwen-2.5:7b"); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

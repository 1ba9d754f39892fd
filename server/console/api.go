package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// apiError is an error that the API answered.
type apiError struct {
	Status int
	Detail string
	Code   string
}

func (e *apiError) Error() string { return e.Detail }

var errNoPage = &apiError{Status: http.StatusNotFound, Detail: "There is no such page."}

// get reads what the API returns for a path.
func (v *visit) get(path string, into any) error { return v.send(http.MethodGet, path, nil, into) }

// send sends a request to the API. A body other than nil is sent as JSON; the answer is stored in target, which may be
// nil. An *apiError if the API refuses.
func (v *visit) send(method, path string, body, target any) error {
	text := []byte{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r := v.request(method, path, bytes.NewReader(text))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer := &recorder{header: http.Header{}}
	v.console.api.ServeHTTP(answer, r)
	if err := v.ctx.Err(); err != nil {
		return err
	}
	if err := answer.err(); err != nil || target == nil {
		return err
	}
	if raw, ok := target.(*[]byte); ok {
		*raw = answer.body.Bytes()
		return nil
	}
	return json.Unmarshal(answer.body.Bytes(), target)
}

// ownHeaders are the headers of a browser's request that the API does not get.
var ownHeaders = []string{"Cookie", "Authorization", "X-Bare-Password", "Content-Length", "Content-Type",
	"Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range", "X-Request-Id"}

// request returns a request to the API on behalf of the person who is signed in. It keeps the headers that say where
// the browser's request comes from, so that the API can refuse other sites' requests.
func (v *visit) request(method, path string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(v.ctx, method, path, body) //nolint:gosec // this process answers it
	if err != nil {                                                 // for example, a parameter that does not fit in a path
		r, _ = http.NewRequestWithContext(v.ctx, method, "/", nil)
	}
	r.Host, r.RemoteAddr, r.RequestURI = v.r.Host, v.r.RemoteAddr, path
	r.Header = v.r.Header.Clone()
	for _, name := range ownHeaders {
		r.Header.Del(name)
	}
	if v.key != "" {
		r.Header.Set("Authorization", "Bearer "+v.key)
	}
	return r
}

// recorder keeps an answer of the API.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *recorder) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// err returns the error in the answer; nil if there is none.
func (a *recorder) err() error {
	if a.status < http.StatusBadRequest {
		return nil
	}
	return problem(a.status, a.body.Bytes())
}

// problem reads an error of the API. Its detail is a text, or a list of fields with what is wrong with each.
func problem(status int, body []byte) *apiError {
	var p struct {
		Detail json.RawMessage
		Code   string
	}
	e := &apiError{Status: status, Detail: http.StatusText(status)}
	if json.Unmarshal(body, &p) != nil {
		return e
	}
	e.Code = p.Code
	var fields []struct {
		Loc []any
		Msg string
	}
	if json.Unmarshal(p.Detail, &e.Detail) != nil && json.Unmarshal(p.Detail, &fields) == nil {
		var all []string
		for _, f := range fields {
			location := ""
			if n := len(f.Loc); n > 0 {
				location, _ = f.Loc[n-1].(string)
			}
			all = append(all, strings.TrimPrefix(location+": "+f.Msg, ": "))
		}
		e.Detail = strings.Join(all, "; ")
	}
	return e
}

// statusOf returns the status of an *apiError; 0 for other errors.
func statusOf(err error) int {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.Status
	}
	return 0
}

// within returns a copy of the visit with another context.
func (v *visit) within(ctx context.Context) *visit {
	bounded := *v
	bounded.ctx = ctx
	return &bounded
}

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

// apiError is what the API answered in place of what a page asked for.
type apiError struct {
	Status int
	Detail string
	Code   string
}

func (e *apiError) Error() string { return e.Detail }

var errNoPage = &apiError{Status: http.StatusNotFound, Detail: "There is no such page."}

// get reads what the API has at a path.
func (v *visit) get(path string, into any) error { return v.send(http.MethodGet, path, nil, into) }

// send asks the API. body is sent as JSON unless it is nil; into may be nil. An *apiError if the API refuses.
func (v *visit) send(method, path string, body, into any) error {
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
	if err := answer.err(); err != nil || into == nil {
		return err
	}
	if raw, is := into.(*[]byte); is {
		*raw = answer.body.Bytes()
		return nil
	}
	return json.Unmarshal(answer.body.Bytes(), into)
}

// ownHeaders are the headers of a browser's request that are not passed on to the API.
var ownHeaders = []string{"Cookie", "Authorization", "X-Bare-Password", "Content-Length", "Content-Type",
	"Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range", "X-Request-Id"}

// request returns a request to the API in the name of the person who is signed in. It keeps the headers that say where
// the browser's request comes from, so that the API refuses what it would refuse without the console.
func (v *visit) request(method, path string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(v.ctx, method, path, body) //nolint:gosec // this process answers it
	if err != nil {                                                 // as of a parameter that is no part of a path
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

// err returns what an answer refuses.
func (a *recorder) err() error {
	if a.status < http.StatusBadRequest {
		return nil
	}
	return problem(a.status, a.body.Bytes())
}

// problem reads an error of the API, whose detail is a text or a list of what is wrong with which field.
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
			where := ""
			if n := len(f.Loc); n > 0 {
				where, _ = f.Loc[n-1].(string)
			}
			all = append(all, strings.TrimPrefix(where+": "+f.Msg, ": "))
		}
		e.Detail = strings.Join(all, "; ")
	}
	return e
}

// statusOf returns the status of an error of the API, 0 of another one.
func statusOf(err error) int {
	if e, is := errors.AsType[*apiError](err); is {
		return e.Status
	}
	return 0
}

// within returns the visit with another context.
func (v *visit) within(ctx context.Context) *visit {
	bounded := *v
	bounded.ctx = ctx
	return &bounded
}

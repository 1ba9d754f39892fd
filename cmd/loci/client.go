package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/loci-memory/loci/server"
)

// remote holds the settings of a command that calls a running server.
type remote struct {
	Addr   string `env:"LOCI_URL,LOCI_ADDR" default:"127.0.0.1:8283" help:"Address or URL of the server."`
	APIKey secret `name:"api-key" env:"LOCI_API_KEY" help:"API key, if the server asks for one."`
}

const callTimeout = 10 * time.Second

// maxAnswer bounds answers that are held in memory.
const maxAnswer = 64 << 20

// get sends a GET request, and decodes the answer into out.
func (r remote) get(ctx context.Context, path string, out any) error {
	return r.call(ctx, path, nil, "", out)
}

// call sends a GET request or, if body is not nil, a POST request, and decodes the answer into out.
func (r remote) call(ctx context.Context, path string, body io.Reader, mediaType string, out any) error {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := r.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", mediaType)
	return answer(req, out)
}

// answer sends a request, and decodes the answer into out. A status from 400 on becomes an error with the server's
// sentence.
func answer(req *http.Request, out any) error {
	text, err := bodyOf(req)
	if err != nil {
		return err
	}
	return decode(text, out)
}

// errNotLoci says that the answer comes from another program.
var errNotLoci = errors.New("what LOCI_URL (--addr) names does not answer as a Loci server: set it to the address of " +
	"one, such as http://127.0.0.1:8283, without a path of the console or the API")

// decode decodes an answer of the server into out. The following are no answers of a Loci server: text that is no JSON,
// JSON of another type, and an object without any of the expected fields.
func decode(text []byte, out any) error {
	if json.Unmarshal(text, out) != nil {
		return errNotLoci
	}
	target := reflect.TypeOf(out).Elem()
	if target.Kind() != reflect.Struct {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return errNotLoci
	}
	for _, f := range reflect.VisibleFields(target) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for name := range fields {
			if strings.EqualFold(name, cmp.Or(tag, f.Name)) {
				return nil
			}
		}
	}
	return errNotLoci
}

// send sends a request, and decodes the answer into out. body and out may be nil.
func (r remote) send(ctx context.Context, method, path string, body, out any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := r.request(ctx, method, path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if out == nil {
		text, err := bodyOf(req)
		if err == nil && len(text) > 0 && !json.Valid(text) {
			err = errNotLoci
		}
		return err
	}
	return answer(req, out)
}

// unanswered returns the error for a request without an answer.
func unanswered(req *http.Request, err error) error {
	if sending, ok := errors.AsType[*url.Error](err); ok {
		err = sending.Err
	}
	address := req.URL.Scheme + "://" + req.URL.Host
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no server answers at %s (LOCI_URL, --addr): start it with 'loci serve', or name another "+
			"address: %w", address, err)
	}
	return fmt.Errorf("reach the server at %s (LOCI_URL, --addr): %w", address, err)
}

// bodyOf sends a request, and returns the body of the answer.
func bodyOf(req *http.Request) ([]byte, error) {
	res, err := http.DefaultClient.Do(req) //nolint:gosec // the operator names the server
	if err != nil {
		return nil, unanswered(req, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return nil, refusal(res.StatusCode, text)
	}
	return text, nil
}

// refusal returns an error with the server's sentence, from the body of an answer with a status from 400 on.
func refusal(status int, text []byte) error {
	var answer struct {
		Detail string `json:"detail"`
	}
	if strings.HasPrefix(strings.TrimSpace(string(text)), "<") { // a web page, of the console or another program
		return fmt.Errorf("%w (status %d)", errNotLoci, status)
	}
	if json.Unmarshal(text, &answer) != nil || answer.Detail == "" {
		answer.Detail = string(text)
	}
	if status == http.StatusNotFound && answer.Detail == http.StatusText(status) { // no such route
		return fmt.Errorf("%w (status %d)", errNotLoci, status)
	}
	if status == http.StatusUnauthorized {
		answer.Detail += ". A command sends the key of LOCI_API_KEY or --api-key"
	}
	return &refusedRequest{answer.Detail, status}
}

// refusedRequest is the error for a request that a server refused.
type refusedRequest struct {
	detail string
	status int
}

func (e *refusedRequest) Error() string { return fmt.Sprintf("%s (status %d)", e.detail, e.status) }

// check returns an error if the address is invalid, or the key cannot be sent.
func (r remote) check() error {
	address, err := url.Parse(serverURL(r.Addr))
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return settingError{fmt.Errorf("LOCI_URL (--addr) is '%s'; it must be an address such as 127.0.0.1:8283 or "+
			"https://loci.example", r.Addr)}
	}
	if strings.ContainsFunc(string(r.APIKey), unicode.IsControl) {
		return settingError{errors.New("LOCI_API_KEY (--api-key) has a character that no key has, such as the end of a " +
			"line: give the key alone")}
	}
	return nil
}

// request returns a request with the API key.
func (r remote) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, serverURL(r.Addr)+path, body)
	if err == nil && r.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+string(r.APIKey))
	}
	return req, err
}

// healthCmd asks a server for its health.
type healthCmd struct {
	remote
	asked
}

func (c healthCmd) Run(ctx context.Context, s streams) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var health server.Health
	if err := c.get(ctx, "/v1/ready/", &health); err != nil {
		return err
	}
	if health.Version == "" {
		return errNotLoci
	}
	if c.JSON {
		return printJSON(s, health)
	}
	_, err := fmt.Fprintf(s.out, "%s, version %s\n", health.Status, health.Version)
	return err
}

// serverURL returns the URL of a running server for a LOCI_ADDR.
func serverURL(addr string) string {
	if strings.Contains(addr, "://") {
		return strings.TrimRight(addr, "/")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Package web reads pages of the web, and lists of them, from addresses that the operator allows.
//
// Each file uses those that are named before it: allowed.go robots.go web.go list.go
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Bounds of reading. A page's own size is bounded by Reader.MaxBytes.
const (
	maxHops     = 10
	pageTime    = 2 * time.Minute // for one page with its redirects
	dialTime    = 10 * time.Second
	answerTime  = 30 * time.Second // until an answer begins
	maxHeader   = 256 << 10
	drainAtMost = 64 << 10 // of a body that is not needed, so that its connection serves again
)

// Reader reads pages. It is for one goroutine.
type Reader struct {
	Allowed  Allowed
	Agent    string // what the User-Agent header says; its first word, up to a slash, is the name in robots.txt
	MaxBytes int64  // of one page

	// Pause waits as a robots.txt asks for, and reports whether ctx is still valid.
	Pause func(context.Context, time.Duration) bool

	client *http.Client
	robots map[string]*rules // by scheme and host
}

// Open makes the reader ready. It uses no proxy, because then the address of the proxy would be checked, not that of
// the page.
func (r *Reader) Open() {
	r.robots = map[string]*rules{}
	r.client = &http.Client{
		Transport: &http.Transport{DialContext: r.dial, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: answerTime,
			IdleConnTimeout: time.Minute, MaxIdleConns: 8, MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dial connects to a host. Each address that its name stands for is checked when the connection is made, so that a name
// that changes its address between a check and a connection gains nothing.
func (r *Reader) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTime, Control: r.Allowed.control(host)}
	return d.DialContext(ctx, network, address)
}

// Validators are what an answer said of its version. A server that is asked with them may answer that nothing changed.
type Validators struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// Page is what a URL answered.
type Page struct {
	URL       string // the URL that was asked for, or where permanent redirects (301, 308) lead
	Unchanged bool   // since the validators; nothing was written
	Validators
	MediaType string // as declared, with parameters
}

// StatusError says that a page was answered with a status that is no success.
type StatusError struct {
	URL    string
	Status int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// IsGone reports whether the page does not exist.
func (e *StatusError) IsGone() bool {
	return e.Status == http.StatusNotFound || e.Status == http.StatusGone
}

// Fetch writes a page to w, unless it did not change since its validators. It follows redirects, each of which is
// checked like the URL itself. *RefusedError for an address that is not allowed, ErrRobots, *StatusError.
func (r *Reader) Fetch(ctx context.Context, address string, have Validators, w io.Writer) (Page, error) {
	u, err := Parse(address)
	if err != nil {
		return Page{}, err
	}
	return r.follow(ctx, u, have, r.obey, func(res *http.Response) error { return r.copyBody(w, res) })
}

// follow asks for a page, follows its redirects, and gives its body to read. It calls before for each request.
func (r *Reader) follow(ctx context.Context, u *url.URL, have Validators,
	before func(context.Context, *url.URL) error, read func(*http.Response) error) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	at, isMoved := u, true // isMoved: all redirects so far are permanent
	for range maxHops {
		if err := r.Allowed.check(at); err != nil {
			return Page{}, err
		}
		if err := before(ctx, at); err != nil {
			return Page{}, err
		}
		res, err := r.ask(ctx, at, have)
		if err != nil {
			return Page{}, err
		}
		next, err := location(at, res)
		if next == nil {
			if err == nil {
				err = r.answered(at, res, read)
			}
			_ = res.Body.Close() // it is only read
			return pageOf(u, res), err
		}
		_, _ = io.CopyN(io.Discard, res.Body, drainAtMost)
		_ = res.Body.Close() // it is only read
		at = next
		isMoved = isMoved && (res.StatusCode == http.StatusMovedPermanently || res.StatusCode == http.StatusPermanentRedirect)
		if isMoved {
			u = next
		}
	}
	return Page{}, fmt.Errorf("it redirects more than %d times", maxHops)
}

// ask sends one request.
func (r *Reader) ask(ctx context.Context, u *url.URL, have Validators) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", r.Agent)
	if have.ETag != "" {
		req.Header.Set("If-None-Match", have.ETag)
	}
	if have.LastModified != "" {
		req.Header.Set("If-Modified-Since", have.LastModified)
	}
	res, err := r.client.Do(req) //nolint:gosec // its addresses are checked when the connection is made
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return nil, refused
	}
	if sending, ok := errors.AsType[*url.Error](err); ok {
		err = sending.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %s", pageTime)
	}
	return res, err
}

// location returns where an answer redirects, or nil if it does not.
func location(at *url.URL, res *http.Response) (*url.URL, error) {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	next, err := at.Parse(res.Header.Get("Location"))
	if err != nil || res.Header.Get("Location") == "" {
		return nil, errors.New("it redirects to what is no URL")
	}
	return Parse(next.String())
}

func (r *Reader) answered(at *url.URL, res *http.Response, read func(*http.Response) error) error {
	switch {
	case res.StatusCode == http.StatusNotModified:
		return nil
	case res.StatusCode != http.StatusOK:
		return &StatusError{at.Redacted(), res.StatusCode}
	}
	return read(res)
}

func (r *Reader) copyBody(w io.Writer, res *http.Response) error {
	n, err := io.Copy(w, io.LimitReader(res.Body, r.MaxBytes+1))
	if n > r.MaxBytes {
		return fmt.Errorf("it has more than %d bytes", r.MaxBytes)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %s", pageTime)
	}
	return err
}

func pageOf(u *url.URL, res *http.Response) Page {
	return Page{URL: u.String(), Unchanged: res.StatusCode == http.StatusNotModified,
		Validators: Validators{res.Header.Get("ETag"), res.Header.Get("Last-Modified")},
		MediaType:  res.Header.Get("Content-Type")}
}

// Parse returns a URL in the one form that equal URLs have: without a fragment, without dots in its path, its host in
// lower case and without a default port.
func Parse(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	u = (&url.URL{}).ResolveReference(u)
	u.Scheme, u.Fragment, u.RawFragment = strings.ToLower(u.Scheme), "", ""
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("only URLs of http and https are read")
	case u.User != nil:
		return nil, errors.New("the URL has a user or a password, which are not sent: remove them")
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil {
		host, err := hostOf(u.Hostname())
		if err != nil {
			return nil, errors.New("the URL has no host, or one that cannot be")
		}
		u.Host = host + portOf(u)
	}
	if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// portOf returns a URL's port behind a colon, or nothing.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return ":" + port
	}
	return ""
}

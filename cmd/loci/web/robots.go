package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
)

// Bounds of what a robots.txt asks for. RFC 9309 wants 500 KiB to be read at the least.
const (
	maxRobots = 512 << 10
	maxDelay  = time.Minute
)

// ErrRobots says that the robots.txt of a host does not let Loci read a page.
var ErrRobots = errors.New("the robots.txt of its host does not let Loci read it")

// rules are what the robots.txt of a host says to Loci.
type rules struct {
	group *robotstxt.Group
	err   error
	next  time.Time // when the next request may be sent
}

// obey waits as long as the robots.txt of a URL's host asks for. ErrRobots if it does not let the URL be read.
func (r *Reader) obey(ctx context.Context, u *url.URL) error {
	origin := u.Scheme + "://" + u.Host
	found, known := r.robots[origin]
	if !known {
		found = r.readRobots(ctx, u)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.robots[origin] = found
	}
	switch {
	case found.err != nil:
		return found.err
	case !found.group.Test(u.RequestURI()):
		return ErrRobots
	}
	delay := min(found.group.CrawlDelay, maxDelay)
	if wait := time.Until(found.next); delay > 0 && wait > 0 && !r.Pause(ctx, wait) {
		return ctx.Err()
	}
	found.next = time.Now().Add(delay)
	return nil
}

// readRobots reads the robots.txt of a URL's host. If there is none, all may be read; if the host does not
// say, nothing.
func (r *Reader) readRobots(ctx context.Context, u *url.URL) *rules {
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	var body bytes.Buffer
	_, err := r.follow(ctx, at, Validators{}, func(context.Context, *url.URL) error { return nil },
		func(res *http.Response) error {
			_, err := io.Copy(&body, io.LimitReader(res.Body, maxRobots))
			return err
		})
	status, isStatus := errors.AsType[*StatusError](err)
	switch {
	case isStatus && status.Status/100 == 4:
		return &rules{group: &robotstxt.Group{}}
	case err != nil:
		return &rules{err: &robotsError{at.Redacted(), err}}
	}
	data, err := robotstxt.FromString(understood(body.String()))
	if err != nil {
		return &rules{err: &robotsError{at.Redacted(), errors.New("it has lines that nobody understands")}}
	}
	return &rules{group: data.FindGroup(r.Agent)}
}

// understood returns the lines of a robots.txt that are understood, because one other line would make all invalid.
func understood(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "\n")) {
		line, _, _ = strings.Cut(line, "#")
		key, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "crawl-delay":
			if delay, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil || !(delay >= 0) {
				continue
			}
		case "user-agent", "allow", "disallow":
		default:
			continue
		}
		lines.WriteString(strings.TrimSpace(line) + "\n")
	}
	return lines.String()
}

// robotsError says that the robots.txt of a host cannot be read, and so no page of the host.
type robotsError struct {
	address string
	cause   error
}

func (e *robotsError) Error() string {
	return "nothing of its host is read, because " + e.address + " cannot be read: " + e.cause.Error()
}

func (e *robotsError) Unwrap() error { return e.cause }

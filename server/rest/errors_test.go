package rest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

func TestProblemOf(t *testing.T) {
	t.Parallel()
	pg := func(code, constraint string) error {
		return db.Error(&pgconn.PgError{Code: code, ConstraintName: constraint, Message: "an internal of Postgres"})
	}
	png := &document.UnsupportedError{MediaType: "image/png", Name: "a.png"}
	_, refused := pgconn.Connect(context.Background(), "host=127.0.0.1 port=1 connect_timeout=1")
	for _, c := range []struct {
		name   string
		err    error
		status int
		detail string
		header string
	}{
		{"not found", db.NotFound("there is no such folder"), 404, "there is no such folder", ""},
		{"not found, wrapped", fmt.Errorf("open a: %w", db.NotFound("no file")), 404, "open a: no file", ""},
		{"conflict is not retried", db.Conflict("taken"), 409, "taken", "X-Should-Retry: false"},
		{"invalid", db.Invalid("too long"), 400, "too long", ""},
		{"busy is worth another try", fmt.Errorf("prompt: %w", db.Busy("ask again")), 503, "prompt: ask again",
			"Retry-After: 2"},
		{"a reset meanwhile is no fault of the server", fmt.Errorf("append: %w", recall.ErrReset), 409,
			"append: The messages of the agent were reset while this request was worked on; send it again",
			"Retry-After: 1"},
		{"an unsupported upload, although it is invalid", &files.UnsupportedError{UnsupportedError: png}, 415, png.Error(),
			""},
		{"an upload that is too large", fmt.Errorf("x: %w", &files.TooLargeError{LimitBytes: 10}), 413,
			(&files.TooLargeError{LimitBytes: 10}).Error(), ""},
		{"a body that is too large", fmt.Errorf("x: %w", &http.MaxBytesError{Limit: 10}), 413,
			"The request's body is larger than 10 bytes", ""},
		{"a unique rule of the schema", pg("23505", "folders_name"), 409, "the request contradicts what is stored " +
			"(folders_name)", "X-Should-Retry: false"},
		{"a foreign key", pg("23503", "files_folder"), 404, "what the request names does not exist (files_folder)", ""},
		{"a check", pg("23514", "agents_name_length"), 400, "a value of the request cannot be stored (agents_name_length)",
			""},
		{"a NUL", pg("22021", ""), 400, "a value of the request cannot be stored: a text has a NUL or is not UTF-8", ""},
		{"a number beyond its column", pg("22003", ""), 400, "a value of the request cannot be stored", ""},
		{"a caller who left", fmt.Errorf("query: %w", context.Canceled), 499, "Client disconnected", ""},
		{"a deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), 503,
			"The database does not answer, or another session of it holds a lock that this needs; try again in a moment",
			"Retry-After: 1"},
		{"a database that is not there", refused, 503, noDatabase, "Retry-After: 1"},
		{"a database that shuts down", pg("57P01", ""), 503, noDatabase, "Retry-After: 1"},
		{"a database that starts", pg("57P03", ""), 503, noDatabase, "Retry-After: 1"},
		{"a database without a free connection", pg("53300", ""), 503,
			"The database takes no more connections, because other sessions have them all; try again in a moment",
			"Retry-After: 5"},
		{"a lost connection", pg("08006", ""), 503, noDatabase, "Retry-After: 1"},
		{"an error of ours in SQL", pg("42601", ""), 500, "An unknown error occurred", ""},
		{"another network's error", &net.OpError{Op: "dial", Err: errors.New("refused")}, 500, "An unknown error occurred",
			""},
		{"anything else", io.ErrUnexpectedEOF, 500, "An unknown error occurred", ""},
		{"a status that was chosen", rest.Forbidden("not from here"), 403, "not from here", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := rest.ProblemOf(c.err)
			if p.GetStatus() != c.status || p.Error() != c.detail {
				t.Errorf("%v: got %d %q, want %d %q", c.err, p.GetStatus(), p.Detail, c.status, c.detail)
			}
			header := ""
			for name, values := range p.GetHeaders() {
				header += name + ": " + values[0]
			}
			if header != c.header {
				t.Errorf("%v: got header %q, want %q", c.err, header, c.header)
			}
		})
	}
}

const noDatabase = "The database does not answer; try again in a moment"

// If an answer cannot be written because the client left, that is no failure of the server. A broken connection of the
// server's own is one.
func TestAClientThatLeavesIsNoFault(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	for _, code := range []syscall.Errno{syscall.EPIPE, syscall.ECONNRESET} {
		err := &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", code)}
		if status, _ := a.Explain(ctx, err); status != 499 || log.Len() > 0 {
			t.Errorf("%v: got %d, and the log says %s", err, status, log.String())
		}
		if status, _ := a.Explain(t.Context(), err); status != 500 || log.Len() == 0 {
			t.Errorf("%v of a request that goes on: got %d, and the log says %q", err, status, log.String())
		}
		log.Reset()
	}
}

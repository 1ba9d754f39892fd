package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/loci-memory/loci/server/rest"
)

// A client that leaves an answer unread holds what the answer needs, such as its memory. Connections therefore bound
// how long they wait for a client to take what is written, whoever writes it. An answer without news, such as a quiet
// stream of events, waits for no client.

// pieceBytes are written at a time. What a client takes of them counts.
const pieceBytes = 64 << 10

// ownError matches an error that net/http answers before any handler runs.
var ownError = regexp.MustCompile(`^HTTP/1\.1 (([45]\d\d) [^\r\n]*)\r\n` +
	`Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n(.*)$`)

// Write gives an error that net/http answers itself the form of the API's errors.
func (c *headConn) Write(p []byte) (int, error) {
	m := ownError.FindSubmatch(p)
	if m == nil {
		return c.send(p)
	}
	status, _ := strconv.Atoi(string(m[2])) // three digits
	body, err := json.Marshal(rest.StatusProblem(status, "The request cannot be read: "+string(m[3])))
	if err != nil {
		return 0, err
	}
	_, err = c.send(fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s", m[1], rest.JSON, len(body), body))
	return len(p), err
}

// send writes p at the pace at which a client must take an answer. os.ErrDeadlineExceeded if it does not.
func (c *headConn) send(p []byte) (written int, err error) {
	for written < len(p) {
		began := time.Now()
		_ = c.SetWriteDeadline(began.Add(c.answer.Patience())) // an error is one of Write, too
		n, err := c.Conn.Write(p[written:min(written+pieceBytes, len(p))])
		c.answer.Note(n, time.Since(began))
		written += n
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || c.answer.Patience() == 0) {
			return written, err
		}
	}
	return written, nil
}

// CloseWrite tells the client that the answer has ended, and reads for a while what the client still sends: one that
// reads nothing before it has sent all would not see the answer otherwise. net/http calls it before it closes the
// connection of a request that was not read to its end.
func (c *headConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(c.pace.Rest)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c.Conn)
	return err
}

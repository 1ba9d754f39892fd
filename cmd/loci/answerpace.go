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

// A client that does not read its answer holds resources such as memory. Therefore connections bound how long a write
// may wait for the client, whoever writes. While an answer has nothing new to send, such as a quiet stream of events,
// nothing waits.

// pieceBytes is how many bytes are written at a time. Progress is measured per piece.
const pieceBytes = 64 << 10

// ownError matches an error that net/http itself answers before any handler runs.
var ownError = regexp.MustCompile(`^HTTP/1\.1 (([45]\d\d) [^\r\n]*)\r\n` +
	`Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n(.*)$`)

// Write gives errors that net/http itself answers the form of the API's errors.
func (c *headConn) Write(p []byte) (int, error) {
	m := ownError.FindSubmatch(p)
	if m == nil {
		return c.send(p)
	}
	status, _ := strconv.Atoi(string(m[2])) // the pattern matched three digits
	body, err := json.Marshal(rest.StatusProblem(status, "The request cannot be read: "+string(m[3])))
	if err != nil {
		return 0, err
	}
	_, err = c.send(fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s", m[1], rest.JSON, len(body), body))
	return len(p), err
}

// send writes p at the pace that clients must keep. os.ErrDeadlineExceeded if the client is too slow.
func (c *headConn) send(p []byte) (written int, err error) {
	for written < len(p) {
		start := time.Now()
		_ = c.SetWriteDeadline(start.Add(c.answer.Patience())) // Write returns the error, too
		n, err := c.Conn.Write(p[written:min(written+pieceBytes, len(p))])
		c.answer.Note(n, time.Since(start))
		written += n
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || c.answer.Patience() == 0) {
			return written, err
		}
	}
	return written, nil
}

// CloseWrite tells the client that the answer has ended, and then reads what the client still sends, for a while.
// Otherwise a client that sends everything before it reads would miss the answer. net/http calls this before it closes
// the connection of a request that was not read to its end.
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

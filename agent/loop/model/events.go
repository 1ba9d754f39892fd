package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/loci-memory/loci/embed/provider"
)

// events reads the data of server-sent events. It accepts any line ends, a missing blank after the colon, and a missing
// empty line between events. Other lines are read as JSON at the end, because a server that does not stream answers
// with a single object, and some send an error that way.
type events struct {
	lines *bufio.Reader
	most  int64  // bounds the bytes of an event, and of all other lines; ErrTooBig beyond
	data  []byte // data of the event that is being read
	other bytes.Buffer
	json  *json.Decoder // reads other, once all lines were read
	ended bool          // there are no more lines
	done  bool          // the stream announced its end
	plain bool          // there are lines that are no fields of events
}

func newEvents(r io.Reader, most int64) *events {
	return &events{lines: bufio.NewReader(r), most: most}
}

var (
	fieldData  = []byte("data:")
	fieldError = []byte("error:") // llama.cpp's own
	otherNames = [][]byte{[]byte(":"), []byte("event:"), []byte("id:"), []byte("retry:")}
	doneMark   = []byte("[DONE]")
)

// next returns the data of the next event. io.EOF after the last one.
func (e *events) next() (json.RawMessage, error) {
	for e.json == nil {
		data, err := e.read()
		switch {
		case err != nil:
			return nil, err
		case bytes.Equal(data, doneMark):
			e.done, e.json = true, json.NewDecoder(&e.other)
		case len(data) > 0:
			return data, nil
		}
	}
	var raw json.RawMessage
	if e.json.Decode(&raw) != nil {
		return nil, io.EOF
	}
	return raw, nil
}

// read reads the next line, and returns the data of an event that it ends.
func (e *events) read() ([]byte, error) {
	if e.ended {
		e.json = json.NewDecoder(&e.other)
		return e.data, nil
	}
	line, err := e.readLine()
	if e.ended = errors.Is(err, io.EOF); err != nil && !e.ended {
		return nil, err
	}
	return e.line(bytes.TrimRight(line, "\r\n")), nil
}

// readLine reads a line with its end. provider.ErrTooBig if more than most bytes would be kept.
func (e *events) readLine() (line []byte, err error) {
	for {
		piece, err := e.lines.ReadSlice('\n')
		if int64(len(line)+len(piece)+max(len(e.data), e.other.Len())) > e.most {
			return nil, provider.ErrTooBig
		}
		if line = append(line, piece...); !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// line takes a line, and returns the data of an event that ended before it or with it.
func (e *events) line(line []byte) (ended []byte) {
	if data, is := bytes.CutPrefix(line, fieldData); is {
		data = bytes.TrimPrefix(data, []byte(" "))
		if len(e.data) > 0 && (json.Valid(e.data) || bytes.Equal(e.data, doneMark)) {
			ended, e.data = e.data, bytes.TrimSpace(data)
			return ended
		}
		e.data = bytes.TrimSpace(append(append(e.data, '\n'), data...))
		return nil
	}
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		ended, e.data = e.data, nil
		return ended
	case bytes.HasPrefix(line, fieldError):
		line = append(append([]byte(`{"error":`), line[len(fieldError):]...), '}')
	}
	for _, name := range otherNames {
		if bytes.HasPrefix(line, name) {
			return nil
		}
	}
	e.plain = true
	e.other.Write(append(line, '\n'))
	return nil
}

package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// copyAnswer passes an answer on, and calls stored with all of it before its last event goes out: the client's next
// request finds it stored. Of an answer that ends before it is whole, stored is not called.
func copyAnswer(w http.ResponseWriter, answer *http.Response, d *dialect, stored func(whole []byte)) error {
	if !isStream(answer.Header.Get("Content-Type")) {
		return copyWhole(w, answer, stored)
	}
	var all record
	var held []byte // the last event, until all of it is there
	out, buffer := flusher{w}, make([]byte, 32<<10)
	ended := false
	for {
		n, err := answer.Body.Read(buffer)
		piece := buffer[:n]
		all.add(piece)
		switch {
		case ended:
		case held != nil:
			held = append(held, piece...)
			piece = nil
		default:
			if end := d.end(piece); end >= 0 {
				held, piece = append([]byte{}, piece[end:]...), piece[:end]
			}
		}
		if len(piece) > 0 {
			if _, err := out.Write(piece); err != nil {
				return err
			}
		}
		if held != nil && (err != nil || bytes.Contains(held, []byte("\n\n")) || bytes.Contains(held, []byte("\r\n\r\n"))) {
			if ended = true; !all.more {
				stored(all.Bytes())
			}
			if _, err := out.Write(held); err != nil {
				return err
			}
			held = nil
		}
		if errors.Is(err, io.EOF) {
			if !ended && !all.more {
				stored(all.Bytes()) // a stream without the usual end
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copyWhole is copyAnswer for an answer that is no stream of events.
func copyWhole(w http.ResponseWriter, answer *http.Response, stored func(whole []byte)) error {
	whole, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
	if err == nil && len(whole) <= maxAnswerBytes {
		stored(whole)
	}
	if _, err := w.Write(whole); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(flusher{w}, answer.Body)
	return err
}

package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/spool"
)

// Spool is a request's body in a temporary file. Only one item of its lists is in memory at a time. A small body needs
// no file.
type Spool struct {
	Warnings Warnings // from Fields and Warn
	body     spool.Spool
	release  func() // stops counting the file's bytes
	held     heldBody
}

// Spool receives a request's body of at most limitBytes. The caller must close the Spool.
func (a *API) Spool(c echo.Context, limitBytes int64) (*Spool, error) {
	if c.Request().ContentLength > limitBytes {
		return nil, TooLarge(limitBytes)
	}
	release := a.CountSpooled(c)
	s, err := a.SpoolFrom(c, Body(c, limitBytes))
	if err != nil {
		release()
		return nil, err
	}
	s.release = release
	return s, nil
}

// SpoolFrom receives a text that is part of a request's body. The caller limits and counts the body, and closes the
// Spool.
func (a *API) SpoolFrom(c echo.Context, text io.Reader) (*Spool, error) {
	ctx := c.Request().Context()
	s := &Spool{Warnings: WarningsOf(ctx), body: spool.Spool{Memory: smallBytes}, release: func() {},
		held: heldBody{in: a.bodies, org: Org(ctx)}}
	if _, err := io.Copy(&s.body, withoutBOM(text)); err != nil {
		s.body.Close()
		if _, onDisk := errors.AsType[*fs.PathError](err); onDisk {
			return nil, fmt.Errorf("spool the request's body: %w", err)
		}
		return nil, bodyError(err)
	}
	return s, nil
}

// smallBytes is the size of the largest body that is kept in memory.
const smallBytes = 16<<10 - 1

// Close deletes the file, and gives its bytes back to the API's BodyBudget.
func (s *Spool) Close() {
	s.held.release()
	s.body.Close()
	s.release()
}

// Rewrite replaces the body by what change makes of it; nil leaves it. A body of more than limitBytes is left, too.
func (s *Spool) Rewrite(limitBytes int64, change func([]byte) ([]byte, error)) error {
	if s.body.Size() > limitBytes {
		return nil
	}
	if err := s.held.grow(s.body.Size()); err != nil {
		return err
	}
	raw, err := io.ReadAll(s.from(0))
	if err != nil {
		return err
	}
	changed, err := change(raw)
	if err != nil || changed == nil {
		return err
	}
	s.body.Close()
	s.body = spool.Spool{Memory: smallBytes}
	_, err = s.body.Write(changed)
	return err
}

// Warn adds a sentence to s.Warnings.
func (s *Spool) Warn(warning string) { s.Warnings.add(warning) }

// List is a list in the body of a Spool.
type List struct {
	Len    int
	name   string
	spool  *Spool
	offset int64   // end of the name of the list's field
	ends   []int64 // where each item ends
}

// Lists says which fields of a body may be lists that are read item by item, and how large they may be.
type Lists struct {
	Names    []string
	Others   []string // other fields that the body may have
	MaxItems int
	Remedy   string // a sentence: what to send instead of more items
	Rule     string // a phrase: what the body must be

	MaxItemBytes int64 // bytes of an item or of another field; 0 applies only the BodyBudget
	MaxTextBytes int   // bytes of a text; 0 applies only maxTextBytes
	Large        bool  // an item may have maxItemValues JSON values, enough for an agent with its history
}

// Fields reads the body's object. It returns the object's fields, each list replaced by an empty one, and the lists
// themselves. It skips fields that the body may not have, with a warning. It counts the largest item in the API's
// BodyBudget. A *Problem of status 429 if there is no room for that item.
func (s *Spool) Fields(l Lists) (map[string]json.RawMessage, map[string]*List, error) {
	fields, lists := map[string]json.RawMessage{}, map[string]*List{}
	values := maxBodyValues
	if l.Large {
		values = maxItemValues
	}
	reader := &spoolReader{Reader: s.from(0), held: &s.held, most: l.MaxItemBytes, mostValues: values}
	reader.mostDecoded = l.MaxTextBytes
	decoder := json.NewDecoder(reader)
	err := eachField(decoder, l.Rule, func(name string) error {
		if !slices.Contains(l.Names, name) && !slices.Contains(l.Others, name) {
			s.Warnings.addUnknown("field", name, slices.Concat(l.Names, l.Others))
		}
		offset := decoder.InputOffset()
		reader.place = db.Short(name)
		read := func() {
			reader.done += decoder.InputOffset() - offset
			offset, reader.values = decoder.InputOffset(), 0
		}
		if !slices.Contains(l.Names, name) && !slices.Contains(l.Others, name) {
			return skip(decoder, func() {
				reader.done, offset = reader.done+decoder.InputOffset()-offset, decoder.InputOffset()
			})
		}
		if slices.Contains(l.Names, name) && s.hasList(offset) {
			fields[name] = json.RawMessage("[]")
			lists[name] = &List{name: name, spool: s, offset: offset}
			reader.place = name + "[0]"
			return eachItem(decoder, name, func(i int, raw json.RawMessage) error {
				if i == l.MaxItems {
					return Unprocessable(name, fmt.Sprintf("the list has more than %d items. %s", l.MaxItems, l.Remedy))
				}
				lists[name].Len++
				lists[name].ends = append(lists[name].ends, decoder.InputOffset())
				reader.place = fmt.Sprintf("%s[%d]", name, i+1)
				read()
				return s.checkRaw(fmt.Sprintf("%s[%d]", name, i), raw, 2, values)
			})
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		fields[name] = raw
		return s.checkRaw(name, raw, 1, values)
	})
	if err != nil {
		return nil, nil, bodyError(err)
	}
	return fields, lists, nil
}

// checkRaw returns a *Problem if a value has too many levels or too many values, if an object has a field twice, or if
// a text cannot be stored. within is the number of objects and lists around the value.
func (s *Spool) checkRaw(place string, raw json.RawMessage, within, values int) error {
	if problem := checkShape("body", raw, maxBodyDepth-within, values); problem != nil {
		return problem
	}
	if _, problem := checkNames(nil, nil, place, raw, &s.Warnings); problem != nil {
		return problem
	}
	return nil
}

const jsonSpace = " \t\r\n"

// Items yields the list's items, each in a slice of its own. An error is the last thing that Items yields.
func (l *List) Items() iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		begin, separators := l.offset, ":["
		for _, next := range l.ends {
			raw := make([]byte, next-begin)
			if _, err := l.spool.body.ReadAt(raw, begin); err != nil && !errors.Is(err, io.EOF) {
				yield(nil, fmt.Errorf("read the spooled body: %w", err))
				return
			}
			for i := range separators { // the decoder that found the ends has checked them
				raw = bytes.TrimPrefix(bytes.TrimLeft(raw, jsonSpace), []byte(separators[i:i+1]))
			}
			if begin, separators = next, ","; !yield(bytes.TrimLeft(raw, jsonSpace), nil) {
				return
			}
		}
	}
}

// from returns a reader of the body that begins at an offset.
func (s *Spool) from(offset int64) io.Reader { return io.NewSectionReader(&s.body, offset, 1<<62) }

// hasList reports whether the value after the field name that ends at offset is a list.
func (s *Spool) hasList(offset int64) bool {
	reader := bufio.NewReader(s.from(offset))
	for {
		b, err := reader.ReadByte()
		if err != nil || !strings.ContainsRune(" \t\r\n:", rune(b)) {
			return b == '['
		}
	}
}

// spoolReader counts the bytes that a decoder holds: those it has read, without those of finished items.
type spoolReader struct {
	io.Reader
	held       *heldBody
	read, done int64
	most       int64 // bytes that an item may have; 0 for no limit

	jsonCount
	mostValues int // JSON values that an item may have
}

// readAhead is how many bytes a decoder may hold after its current item.
const readAhead = 64 << 10

// Read implements io.Reader. When a limit is exceeded it returns no bytes, because a token decoder ignores an error
// that comes with bytes.
func (r *spoolReader) Read(buffer []byte) (int, error) {
	n, err := r.Reader.Read(buffer[:min(len(buffer), readAhead)])
	r.read += int64(n)
	if tooLong := r.count(buffer[:n]); tooLong != nil {
		return 0, tooLong
	}
	if r.values > r.mostValues {
		return 0, tooManyValues("body", r.mostValues)
	}
	if r.most > 0 && r.read-r.done > r.most {
		return 0, PartTooLarge("An item of the body's lists, or another of its fields,", r.most)
	}
	if full := r.held.grow(r.read - r.done); full != nil {
		return 0, full
	}
	return n, err
}

// CountSpooled counts the bytes of a request's body, which goes to a file, until release is called. Reads of the body
// return a *Problem of status 429 if the files of all bodies would exceed the API's SpoolBytes, or the organization's
// files its share.
func (a *API) CountSpooled(c echo.Context) (release func()) {
	r := c.Request()
	held := &heldBody{Reader: r.Body, in: heldBytes{large: a.spooled}, org: Org(r.Context())}
	r.Body = countedBody{held, r.Body}
	return held.release
}

// countedBody counts the bytes read from a body. Close closes the body.
type countedBody struct {
	*heldBody
	io.Closer
}

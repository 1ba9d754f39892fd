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

// Spool is a request's body in a temporary file, of whose lists one item at a time is in memory. A small body needs no
// file.
type Spool struct {
	Warnings Warnings // of Fields and Warn
	body     spool.Spool
	release  func() // counts the file no more
	held     heldBody
}

// Spool receives a request's body of at most limitBytes. The caller closes it.
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

// SpoolFrom is Spool of a text that is a part of a request's body. The caller limits and counts the body.
func (a *API) SpoolFrom(c echo.Context, text io.Reader) (*Spool, error) {
	ctx := c.Request().Context()
	s := &Spool{Warnings: WarningsOf(ctx), body: spool.Spool{Memory: smallBytes}, release: func() {},
		held: heldBody{in: a.bodies, org: Org(ctx)}}
	if _, err := io.Copy(&s.body, withoutBOM(text)); err != nil {
		s.body.Close()
		if _, own := errors.AsType[*fs.PathError](err); own {
			return nil, fmt.Errorf("spool the request's body: %w", err)
		}
		return nil, bodyError(err)
	}
	return s, nil
}

// smallBytes is the size of the largest body that is kept in memory.
const smallBytes = 16<<10 - 1

// Close deletes the file, and frees what the body took of the API's BodyBudget.
func (s *Spool) Close() {
	s.held.release()
	s.body.Close()
	s.release()
}

// Warn adds a sentence to Warnings.
func (s *Spool) Warn(warning string) { s.Warnings.add(warning) }

// List is a list in a Spool.
type List struct {
	Len    int
	name   string
	spool  *Spool
	offset int64   // of the end of the list's name
	ends   []int64 // of the items
}

// Lists says which fields of a body may be lists that are read item by item, and how many items each may have.
type Lists struct {
	Names    []string
	Others   []string // the other fields that the body may have
	MaxItems int
	Remedy   string // a sentence on what to send instead of more items
	Rule     string // what the body must be, as a phrase

	MaxItemBytes int64 // of an item or another field; 0 leaves it to the BodyBudget
	MaxTextBytes int   // of a text in them; 0 leaves it to what any text may have
	Large        bool  // an item may have as many values as an agent with its history
}

// Fields reads the body's object. It returns its fields, with an empty list in place of each of the lists, and the
// lists. It adds to Warnings the fields that the body may not have, and passes over them. It counts the largest item in
// the API's BodyBudget: a *Problem of status 429 if there is no room for it.
func (s *Spool) Fields(l Lists) (map[string]json.RawMessage, map[string]*List, error) {
	fields, lists := map[string]json.RawMessage{}, map[string]*List{}
	values := maxBodyValues
	if l.Large {
		values = maxItemValues
	}
	from := &spoolReader{Reader: s.from(0), held: &s.held, most: l.MaxItemBytes, mostValues: values}
	from.mostDecoded = l.MaxTextBytes
	in := json.NewDecoder(from)
	err := eachField(in, l.Rule, func(name string) error {
		if !slices.Contains(l.Names, name) && !slices.Contains(l.Others, name) {
			s.Warnings.addUnknown("field", name, slices.Concat(l.Names, l.Others))
		}
		offset := in.InputOffset()
		from.place = db.Short(name)
		read := func() {
			from.done += in.InputOffset() - offset
			offset, from.values = in.InputOffset(), 0
		}
		if !slices.Contains(l.Names, name) && !slices.Contains(l.Others, name) {
			return skip(in, func() { from.done, offset = from.done+in.InputOffset()-offset, in.InputOffset() })
		}
		if slices.Contains(l.Names, name) && s.hasList(offset) {
			fields[name] = json.RawMessage("[]")
			lists[name] = &List{name: name, spool: s, offset: offset}
			from.place = name + "[0]"
			return eachItem(in, name, func(i int, raw json.RawMessage) error {
				if i == l.MaxItems {
					return Unprocessable(name, fmt.Sprintf("the list has more than %d items. %s", l.MaxItems, l.Remedy))
				}
				lists[name].Len++
				lists[name].ends = append(lists[name].ends, in.InputOffset())
				from.place = fmt.Sprintf("%s[%d]", name, i+1)
				read()
				return s.checkRaw(fmt.Sprintf("%s[%d]", name, i), raw, 2, values)
			})
		}
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
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

// checkRaw returns a *Problem of a value that stands within a number of objects and lists if the body is too deep, if
// it has too many values, if an object of it has a field twice, or if a text of it cannot be stored.
func (s *Spool) checkRaw(place string, raw json.RawMessage, within, values int) error {
	if broken := checkShape("body", raw, maxBodyDepth-within, values); broken != nil {
		return broken
	}
	if _, broken := checkNames(nil, nil, place, raw, &s.Warnings); broken != nil {
		return broken
	}
	return nil
}

const jsonSpace = " \t\r\n"

// Items yields the list's items, each in memory of its own size. The first error is the last thing that is yielded.
func (l *List) Items() iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		begin, before := l.offset, ":["
		for _, end := range l.ends {
			raw := make([]byte, end-begin)
			if _, err := l.spool.body.ReadAt(raw, begin); err != nil && !errors.Is(err, io.EOF) {
				yield(nil, fmt.Errorf("read the spooled body: %w", err))
				return
			}
			for i := range before { // the decoder that found the ends has seen them
				raw = bytes.TrimPrefix(bytes.TrimLeft(raw, jsonSpace), []byte(before[i:i+1]))
			}
			if begin, before = end, ","; !yield(bytes.TrimLeft(raw, jsonSpace), nil) {
				return
			}
		}
	}
}

// from returns a reader of the body from an offset on.
func (s *Spool) from(offset int64) io.Reader { return io.NewSectionReader(&s.body, offset, 1<<62) }

// hasList reports whether the value of the field whose name ends at an offset is a list.
func (s *Spool) hasList(offset int64) bool {
	in := bufio.NewReader(s.from(offset))
	for {
		b, err := in.ReadByte()
		if err != nil || !strings.ContainsRune(" \t\r\n:", rune(b)) {
			return b == '['
		}
	}
}

// spoolReader counts the bytes that a decoder holds: those that it read, without those of the items that are done.
type spoolReader struct {
	io.Reader
	held       *heldBody
	read, done int64
	most       int64 // bytes that an item may have; 0 is any number

	jsonCount
	mostValues int // that an item may have
}

// readAhead is how many bytes at most a decoder holds that are behind its item.
const readAhead = 64 << 10

// Read implements io.Reader. What is read when a bound is exceeded is lost, for a decoder of tokens passes over an
// error that comes with bytes.
func (r *spoolReader) Read(into []byte) (int, error) {
	n, err := r.Reader.Read(into[:min(len(into), readAhead)])
	r.read += int64(n)
	if tooLong := r.count(into[:n]); tooLong != nil {
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

// CountSpooled counts a request's body, which is being written to a file, until release is called. Reading the body
// returns a *Problem of status 429 where the files of all would be larger than the API's SpoolBytes, or those of the
// organization larger than its share.
func (a *API) CountSpooled(c echo.Context) (release func()) {
	r := c.Request()
	held := &heldBody{Reader: r.Body, in: heldBytes{large: a.spooled}, org: Org(r.Context())}
	r.Body = countedBody{held, r.Body}
	return held.release
}

// countedBody closes the body that it counts.
type countedBody struct {
	*heldBody
	io.Closer
}

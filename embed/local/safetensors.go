package local

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// tensors reads a file in the format safetensors.
type tensors struct {
	file   io.ReaderAt
	base   int64 // where the data begins
	header map[string]entry
}

// entry is what the header says about a tensor. The offsets are in bytes from the beginning of the data.
type entry struct {
	Type    string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// typeBytes maps the types that can be read → bytes of a value.
var typeBytes = map[string]int64{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I8": 1}

var errNotSafetensors = errors.New("it is not in the format safetensors, or it was cut off: fetch it again")

// newTensors reads the header of a file of size bytes. It checks that each tensor lies in the file, is as long as its
// shape says, and shares no byte with another.
func newTensors(file io.ReaderAt, size int64) (*tensors, error) {
	var start [8]byte
	if _, err := file.ReadAt(start[:], 0); err != nil {
		return nil, errNotSafetensors
	}
	length := binary.LittleEndian.Uint64(start[:])
	if length > uint64(size-8) { //nolint:gosec // eight bytes were read
		return nil, errNotSafetensors
	}
	raw := make([]byte, length)
	if _, err := file.ReadAt(raw, 8); err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil, errNotSafetensors
	}
	delete(all, "__metadata__")
	t := &tensors{file: file, base: 8 + int64(length), header: map[string]entry{}} //nolint:gosec // below size
	for name, raw := range all {
		var e entry
		if json.Unmarshal(raw, &e) != nil || !e.fits(size-t.base) {
			return nil, fmt.Errorf("its tensor %.100s does not lie in it as the header says: fetch it again", name)
		}
		t.header[name] = e
	}
	return t, t.checkOverlaps()
}

// fits reports whether a tensor lies in data of size bytes and is as long as its shape says.
func (e entry) fits(size int64) bool {
	from, to := e.Offsets[0], e.Offsets[1]
	if from < 0 || to < from || to > size {
		return false
	}
	width, known := typeBytes[e.Type]
	if !known {
		return true // it is never read
	}
	count := width
	for _, n := range e.Shape {
		if n < 0 || n > 0 && count > size/int64(n) {
			return false
		}
		count *= int64(n)
	}
	return count == to-from
}

func (t *tensors) checkOverlaps() error {
	type span struct {
		entry
		name string
	}
	var spans []span
	for name, e := range t.header {
		if e.Offsets[0] < e.Offsets[1] {
			spans = append(spans, span{e, name})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.Offsets[0] - b.Offsets[0]) })
	for i := 1; i < len(spans); i++ {
		if spans[i].Offsets[0] < spans[i-1].Offsets[1] {
			return fmt.Errorf("its tensors %.100s and %.100s share bytes: fetch it again", spans[i-1].name, spans[i].name)
		}
	}
	return nil
}

// entry returns a tensor of floats with the given number of rows and columns.
func (t *tensors) entry(name string, rows, columns int) (entry, error) {
	e, found := t.header[name]
	switch {
	case !found:
		return e, fmt.Errorf("it has no tensor %s", name)
	case e.values() == nil:
		return e, fmt.Errorf("its tensor %s is of type %.20s; F32, F16 and BF16 are read", name, e.Type)
	case !e.is(rows, columns):
		return e, fmt.Errorf("its tensor %s has the shape %v; config.json asks for [%d %d]", name, e.Shape, rows, columns)
	}
	return e, nil
}

// rows calls f for each row of a tensor, in order, with its values. The tensor must have the given number of rows and
// columns. A tensor with one dimension is one row or one column.
func (t *tensors) rows(name string, rows, columns int, f func(i int, row []float32)) error {
	e, err := t.entry(name, rows, columns)
	if err != nil {
		return err
	}
	width, values := typeBytes[e.Type], e.values()
	const chunkBytes = 1 << 20
	some := int(max(1, min(int64(rows), chunkBytes/max(1, width*int64(columns)))))
	raw, row := make([]byte, int64(some)*int64(columns)*width), make([]float32, columns)
	for first := 0; first < rows; first += some {
		count := min(some, rows-first)
		part := raw[:int64(count)*int64(columns)*width]
		if _, err := t.file.ReadAt(part, t.base+e.Offsets[0]+int64(first)*int64(columns)*width); err != nil {
			return fmt.Errorf("read its tensor %s: %w", name, err)
		}
		for i := range count {
			values(row, part[int64(i)*int64(columns)*width:])
			if slices.ContainsFunc(row, notFinite) {
				return fmt.Errorf("its tensor %s has values that are not finite numbers: fetch it again", name)
			}
			f(first+i, row)
		}
	}
	return nil
}

func notFinite(x float32) bool { return x-x != 0 }

// is reports whether a tensor has the given number of rows and columns. Dimensions of 1 do not count.
func (e entry) is(rows, columns int) bool {
	one := func(n int) bool { return n == 1 }
	return slices.Equal(slices.DeleteFunc(slices.Clone(e.Shape), one), slices.DeleteFunc([]int{rows, columns}, one))
}

// floats returns the values of a tensor.
func (t *tensors) floats(name string, rows, columns int) ([]float32, error) {
	var values []float32
	err := t.rows(name, rows, columns, func(_ int, row []float32) {
		if values == nil {
			values = make([]float32, 0, rows*columns)
		}
		values = append(values, row...)
	})
	return values, err
}

// values returns a function that reads values of the tensor's type from bytes, or nil if the type cannot be read.
func (e entry) values() func(to []float32, from []byte) {
	little := binary.LittleEndian
	switch e.Type {
	case "F64":
		return each(8, func(b []byte) float32 { return float32(math.Float64frombits(little.Uint64(b))) })
	case "F32":
		return each(4, func(b []byte) float32 { return math.Float32frombits(little.Uint32(b)) })
	case "F16":
		return each(2, func(b []byte) float32 { return fromHalf(little.Uint16(b)) })
	case "BF16":
		return each(2, func(b []byte) float32 { return math.Float32frombits(uint32(little.Uint16(b)) << 16) })
	case "I8":
		return each(1, func(b []byte) float32 { return float32(int8(b[0])) }) //nolint:gosec // it is a signed byte
	}
	return nil
}

func each(width int, value func([]byte) float32) func(to []float32, from []byte) {
	return func(to []float32, from []byte) {
		for i := range to {
			to[i] = value(from[i*width:][:width])
		}
	}
}

// fromHalf returns the value of a 16-bit float.
func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // the fraction counts 2^-24
		return math.Float32frombits(math.Float32bits(float32(fraction)/(1<<24)) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// integers returns the values of a tensor with one dimension of 64-bit or 32-bit integers.
func (t *tensors) integers(name string, count int) ([]int64, error) {
	e, found := t.header[name]
	switch {
	case !found || !e.is(count, 1):
		return nil, fmt.Errorf("it has no tensor %s of %d values", name, count)
	case e.Type != "I64" && e.Type != "I32":
		return nil, fmt.Errorf("its tensor %s is of type %.20s; I64 and I32 are read", name, e.Type)
	}
	raw := make([]byte, e.Offsets[1]-e.Offsets[0])
	if _, err := t.file.ReadAt(raw, t.base+e.Offsets[0]); err != nil {
		return nil, fmt.Errorf("read its tensor %s: %w", name, err)
	}
	values := make([]int64, count)
	for i := range values {
		if e.Type == "I64" {
			values[i] = int64(binary.LittleEndian.Uint64(raw[8*i:])) //nolint:gosec // it is stored so
		} else {
			values[i] = int64(int32(binary.LittleEndian.Uint32(raw[4*i:]))) //nolint:gosec // it is stored so
		}
	}
	return values, nil
}

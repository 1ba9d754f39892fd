package document

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// frame is where a shape is on its slide, in English Metric Units: y grows downwards.
type frame struct {
	left, top, width, height float64
	known                    bool
}

func (f frame) right() float64  { return f.left + f.width }
func (f frame) bottom() float64 { return f.top + f.height }

// or returns the frame, or other if it is not known.
func (f frame) or(other frame) frame {
	if f.known {
		return f
	}
	return other
}

// frameOf returns the frame in an element a:xfrm or p:xfrm.
func frameOf(t *tree) frame {
	length := func(at *tree, name string) float64 {
		n, err := strconv.ParseInt(at.attr(name), 10, 64)
		if err != nil {
			return 0
		}
		return float64(n)
	}
	offset, extent := t.at("a:off"), t.at("a:ext")
	return frame{length(offset, "x"), length(offset, "y"), length(extent, "cx"), length(extent, "cy"), offset != nil}
}

// slideShape is a shape on a slide, with its text.
type slideShape struct {
	at            frame
	md            *markdown
	isPlaceholder bool
	place, index  string // of a placeholder: its type, and its number in the layout
	alternative   string
	blip          string // relation to the bytes of a picture
	isMedia       bool
}

// writeShapes adds the texts of shapes in the order in which they are read: rows from top to bottom; in a row, columns
// from left to right; in a column, from top to bottom.
func writeShapes(md *markdown, shapes []slideShape) {
	shapes = slices.DeleteFunc(slices.Clone(shapes), func(s slideShape) bool { return s.md.text() == "" })
	rows := clustered(shapes, func(f frame) (from, to float64) { return f.top, f.bottom() })
	for _, row := range rows {
		columns := clustered(row, func(f frame) (from, to float64) { return f.left, f.right() })
		for _, column := range columns {
			slices.SortStableFunc(column, func(a, b slideShape) int { return cmp.Compare(a.at.top, b.at.top) })
			for _, shape := range column {
				md.raw(shape.md.text())
			}
		}
	}
}

// clustered groups shapes by their extent in one direction, in ascending order. A shape belongs to the group before it
// if the middle of one is within the other.
func clustered(shapes []slideShape, extent func(frame) (from, to float64)) (groups [][]slideShape) {
	ordered := slices.Clone(shapes)
	slices.SortStableFunc(ordered, func(a, b slideShape) int {
		fromA, _ := extent(a.at)
		fromB, _ := extent(b.at)
		return cmp.Compare(fromA, fromB)
	})
	begin, end := 0.0, math.Inf(-1) // of the last group
	for _, shape := range ordered {
		from, to := extent(shape.at)
		middle := (begin + end) / 2
		if (from+to)/2 <= end || len(groups) > 0 && from <= middle && middle <= to {
			groups[len(groups)-1] = append(groups[len(groups)-1], shape)
			end = max(end, to)
			continue
		}
		groups = append(groups, []slideShape{shape})
		begin, end = from, to
	}
	return groups
}

// places are the frames of a layout's placeholders: by number ("#3") and by type ("body").
type places map[string]frame

// of returns where a placeholder is.
func (p places) of(kind, index string) frame {
	if at := p["#"+index]; index != "" && at.known {
		return at
	}
	switch kind {
	case "", "obj":
		kind = "body"
	case "ctrTitle":
		kind = "title"
	}
	return p[kind]
}

// set keeps a placeholder's frame.
func (p places) set(kind, index string, at frame) {
	switch kind {
	case "", "obj":
		kind = "body"
	case "ctrTitle":
		kind = "title"
	}
	if index != "" {
		p["#"+index] = at
	}
	if _, twice := p[kind]; !twice {
		p[kind] = at
	}
}

package document

import (
	"cmp"
	"slices"
)

// diagram is a SmartArt diagram: points with texts, and which of them belongs to which.
type diagram struct {
	drawing *drawing
	points  []*diagramPoint
	byID    map[string]*diagramPoint
	below   map[string][]diagramLink // by the upper point
	isBelow map[string]bool
}

type diagramPoint struct {
	id        string
	lines     []*inline
	isWritten bool
}

// diagramLink leads to a lower point.
type diagramLink struct {
	to    string
	order int
}

// diagram reads the texts of a SmartArt diagram, which is a separate part, as a list with its levels.
func (d *drawing) diagram(id string) error {
	g := &diagram{drawing: d, byID: map[string]*diagramPoint{}, below: map[string][]diagramLink{},
		isBelow: map[string]bool{}}
	if err := d.archive.optional(d.links[id].target, g.read); err != nil {
		return err
	}
	for _, links := range g.below {
		slices.SortStableFunc(links, func(a, b diagramLink) int { return cmp.Compare(a.order, b.order) })
	}
	for _, p := range g.points {
		if !g.isBelow[p.id] {
			g.write(p, 0, 0)
		}
	}
	for _, p := range g.points { // those that are below each other in a circle, or too deep
		g.write(p, 0, 0)
	}
	return nil
}

func (g *diagram) read(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.name {
		case "dgm:pt":
			return g.point(x, e)
		case "dgm:cxn":
			if kind := e.attr("type"); kind == "" || kind == "parOf" {
				from, to := e.attr("srcId"), e.attr("destId")
				g.below[from] = append(g.below[from], diagramLink{to, number(e.attr("srcOrd"), 0)})
				g.isBelow[to] = true
			}
			return nil
		}
		return g.read(x)
	})
}

func (g *diagram) point(x *xmlReader, e element) error {
	p := &diagramPoint{id: e.attr("modelId")}
	g.points = append(g.points, p)
	if _, twice := g.byID[p.id]; !twice {
		g.byID[p.id] = p
	}
	return x.find("dgm:t", func(element) error {
		return x.find("a:p", func(element) error {
			line := &slideParagraph{text: &inline{budget: g.drawing.archive.budget}}
			err := g.drawing.inlines(x, line)
			if !line.text.isEmpty() {
				p.lines = append(p.lines, line.text)
			}
			return err
		})
	})
}

// maxDiagramDepth bounds how deep points may be below each other. A list has fewer levels.
const maxDiagramDepth = 100

// write writes a point and those below it, each once.
func (g *diagram) write(p *diagramPoint, level, depth int) {
	if p.isWritten || depth > maxDiagramDepth {
		return
	}
	p.isWritten = true
	for _, text := range p.lines {
		g.drawing.md.put(block{item: true, level: min(level, maxListLevels-1)}, text)
	}
	if len(p.lines) > 0 {
		level++
	}
	for _, link := range g.below[p.id] {
		if lower := g.byID[link.to]; lower != nil {
			g.write(lower, level, depth+1)
		}
	}
}

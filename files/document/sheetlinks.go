package document

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/xuri/excelize/v2"
)

// Limits of the links of a sheet.
const (
	maxSheetLinks = 100_000
	maxLinkCells  = 1000 // of one link, which may be of a range of cells
)

// hasLinks reports whether a piece of a sheet may have a link, or a formula that makes one.
func hasLinks(piece []byte) bool {
	return bytes.Contains(piece, []byte("hyperlink ")) || bytes.Contains(piece, []byte("HYPERLINK("))
}

// linkFormula matches a formula that makes a link, up to its address.
var linkFormula = regexp.MustCompile(`^\s*=?\s*HYPERLINK\(\s*"([^"]+)"`)

// sheetTargets returns the addresses to which the cells of a sheet lead.
func (b *workbook) sheetTargets(part string, links map[string]relation) (sheetFormulas, error) {
	if !b.linked[part] {
		return nil, nil //nolint:nilnil // there are none
	}
	all, count := sheetFormulas{}, 0
	add := func(cell, target string) {
		from, to, _ := strings.Cut(cell+":"+cell, ":")
		to, _, _ = strings.Cut(to, ":")
		left, top, err := excelize.CellNameToCoordinates(from)
		right, bottom, end := excelize.CellNameToCoordinates(to)
		if err != nil || end != nil || !isAddress(target) || (right-left+1)*(bottom-top+1) > maxLinkCells {
			return
		}
		for row := top; row <= bottom; row++ {
			for column := left; column <= right && count < maxSheetLinks && b.archive.budget.handle(16); column++ {
				if count++; all[row-1] == nil {
					all[row-1] = map[int]string{}
				}
				all[row-1][column-1] = target
			}
		}
	}
	return all, b.archive.optional(part, func(x *xmlReader) error { return readTargets(x, "", links, add) })
}

// readTargets calls add for each cell or range with a link. cell is the cell within which it reads.
func readTargets(x *xmlReader, cell string, links map[string]relation, add func(cell, target string)) error {
	return x.each(func(e element) error {
		within := cell
		switch e.name {
		case "c":
			within = e.attr("r")
		case "f":
			text, err := x.text()
			if m := linkFormula.FindStringSubmatch(text); m != nil {
				add(cell, m[1])
			}
			return err
		case "hyperlink":
			if link := links[e.attr("r:id")]; link.external {
				target := link.target
				if place := e.attr("location"); place != "" {
					target += "#" + place
				}
				add(e.attr("ref"), target)
			}
		}
		return readTargets(x, within, links, add)
	})
}

// withTargets returns a row of cells as links to the addresses to which they lead.
func withTargets(cells []string, targets map[int]string) []string {
	for column, target := range targets {
		if column < len(cells) && !isBlank(cells[column]) {
			cells[column] = link(cells[column], target)
		}
	}
	return cells
}

package document

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// omitMacros notes the macros of an OOXML document.
func (a *archive) omitMacros() {
	for _, name := range a.names {
		if path.Base(name) == "vbaProject.bin" {
			a.budget.omitted.addAt(macros, place{}, 1)
		}
	}
}

// omitEmbedded notes the documents within an OOXML part, by its relations, but for those that were seen. They are not
// opened.
func (a *archive) omitEmbedded(links map[string]relation, at place, seen map[string]bool) {
	for _, id := range slices.Sorted(maps.Keys(links)) {
		link := links[id]
		isEmbedded := link.kind == "package" || link.kind == "oleObject" || link.kind == "aFChunk"
		if !isEmbedded || link.external || seen[link.target] {
			continue
		}
		seen[link.target] = true
		a.budget.omitted.addAt(embeddedKind(link.target), at, 1)
	}
}

// embeddedKind says what a part within a document is, by its name.
func embeddedKind(name string) string {
	extension := strings.TrimPrefix(strings.ToLower(path.Ext(name)), ".")
	switch {
	case isWorkbook[extension]:
		return "embedded workbook"
	case isDocument[extension]:
		return "embedded document"
	case isPresentation[extension]:
		return "embedded presentation"
	}
	return "embedded object"
}

var (
	isWorkbook     = setOf("xlsx xlsm xlsb xls ods")
	isDocument     = setOf("docx docm doc odt pdf rtf html mht")
	isPresentation = setOf("pptx pptm ppt odp")
)

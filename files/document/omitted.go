package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Omission is what a document holds of one kind and its text does not.
type Omission struct {
	Kind  string `json:"kind"`  // in the singular, such as "picture without text"
	Count int    `json:"count"` // from 1
	Where string `json:"where"` // such as "pages 3–5, 9" or "sheet Sales"; empty: no place is known

	Remedy string `json:"remedy,omitempty" doc:"What would have it read, or why it was not; absent: nothing is known."`
}

// Settings that name programs of the operator, which read what Loci does not.
const (
	OCRSetting     = "LOCI_OCR_COMMAND"     // reads pictures, and pages that are pictures
	ConvertSetting = "LOCI_CONVERT_COMMAND" // converts old formats into those that Loci reads
)

// Limits of what a document is said to omit.
const (
	MaxOmissions    = 50  // kinds
	maxKindBytes    = 100 // of a kind
	maxPlaceNames   = 10  // places of a kind that are named; a range counts as one
	maxPlaceBytes   = 80  // of the name of a sheet or an attachment
	maxWhereBytes   = 1000
	maxRemedyBytes  = 500
	maxKnownPlaces  = 10_000
	omissionsBeyond = "more kinds of content"
)

// What documents of several formats hold and their texts do not.
const (
	picture       = "picture without text"
	chart         = "chart"
	media         = "audio or video"
	macros        = "macro project"
	attachment    = "attachment"
	hiddenText    = "hidden text"
	deletedText   = "deleted text"
	tableContents = "table of contents"
	hiddenSheet   = "hidden sheet"
	phoneticGuide = "phonetic guide" // how a word is read, above it
	pageUnread    = "page without text"
)

// Check returns an error if an omission, which may come from a hostile document, is not within the limits.
func (o Omission) Check() error {
	isText := func(s string) bool {
		return !strings.ContainsFunc(s, unicode.IsControl) && strings.ToValidUTF8(s, "") == s
	}
	if o.Kind == "" || len(o.Kind) > maxKindBytes || len(o.Where) > maxWhereBytes || len(o.Remedy) > maxRemedyBytes ||
		o.Count < 1 || !isText(o.Kind) || !isText(o.Where) || !isText(o.Remedy) {
		return fmt.Errorf("the omission %+.200q is not within the limits", o)
	}
	return nil
}

// String returns an omission for a list of several: "2 pictures without text (page 3)".
func (o Omission) String() string {
	text := fmt.Sprint(o.Count) + " " + o.Kind
	if o.Count != 1 {
		text = fmt.Sprint(o.Count) + " " + pluralKind(o.Kind)
	}
	var details []string
	for _, detail := range []string{o.Where, o.Remedy} {
		if detail != "" {
			details = append(details, detail)
		}
	}
	if details != nil {
		text += " (" + strings.Join(details, "; ") + ")"
	}
	return text
}

// ListOmissions returns omissions in one line: "2 pictures without text (page 3), 1 embedded workbook (sheet Sales)".
func ListOmissions(all []Omission) string {
	texts := make([]string, len(all))
	for i, o := range all {
		texts[i] = o.String()
	}
	return strings.Join(texts, ", ")
}

// ReadBy says what a program of the operator read of a document.
type ReadBy struct {
	Kind    string `json:"kind" enum:"OCR,conversion" doc:"What the program did."`
	Program string `json:"program" doc:"Its name, such as tesseract."`
	Where   string `json:"where" doc:"Such as pages 3–5; empty: all of it."`
}

// Kinds of ReadBy.
const (
	ByOCR        = "OCR"
	ByConversion = "conversion"
)

// String returns what a program read, for one line: "OCR (tesseract), pages 3–5".
func (r ReadBy) String() string {
	text := r.Kind + " (" + r.Program + ")"
	if r.Where != "" {
		text += ", " + r.Where
	}
	return text
}

// ListReadBy returns what programs read in one line.
func ListReadBy(all []ReadBy) string {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = r.String()
	}
	return strings.Join(texts, "; ")
}

// pluralKind returns the plural of a kind: of its noun, which stands before the first preposition.
func pluralKind(kind string) string {
	noun, rest := kind, ""
	for _, preposition := range []string{" without ", " with ", " of ", " in ", " that "} {
		if at := strings.Index(noun, preposition); at >= 0 {
			noun, rest = kind[:at], kind[at:]
		}
	}
	switch {
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x") || strings.HasSuffix(noun, "ch"):
		noun += "es"
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey") && !strings.HasSuffix(noun, "ay"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "text"), strings.HasSuffix(noun, "media"), noun == media:
	default:
		noun += "s"
	}
	return noun + rest
}

// place is where a document holds something: a numbered page or slide, or a named sheet or attachment. The zero place
// is not known.
type place struct {
	word string // "page"
	n    int    // from 1; 0: the place has a name
	name string

	// Until settle says whether pages are known: the heading above, or else the number of the paragraph.
	section   string
	paragraph int
}

func numbered(word string, n int) place { return place{word: word, n: n} }

func named(word, name string) place {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, "\ufffd"))
	name = strings.Join(strings.Fields(name), " ")
	if len(name) > maxPlaceBytes {
		name = strings.ToValidUTF8(name[:maxPlaceBytes], "") + "…"
	}
	return place{word: word, name: name}
}

// omissions counts what a reader leaves out of a document. The zero value is ready to use.
type omissions struct {
	at       place // where the reader is now
	kinds    []*omittedKind
	sections bool // the reader follows headings

	withPictures bool // OCR will read pictures
	isReadable   bool // OCR could read some of the pictures
	pictures     []notedPicture

	html htmlPictures
}

type omittedKind struct {
	name   string
	count  int
	places []place // each once, in the order of the document
}

// add notes one thing of a kind where the reader is now.
func (o *omissions) add(kind string) { o.addAt(kind, o.at, 1) }

// addAt notes n things of a kind at a place.
func (o *omissions) addAt(kind string, at place, n int) {
	if n < 1 {
		return
	}
	i := slices.IndexFunc(o.kinds, func(k *omittedKind) bool { return k.name == kind })
	if i < 0 && len(o.kinds) >= MaxOmissions-1 && kind != omissionsBeyond {
		o.addAt(omissionsBeyond, place{}, n)
		return
	}
	if i < 0 {
		i, o.kinds = len(o.kinds), append(o.kinds, &omittedKind{name: kind})
	}
	k := o.kinds[i]
	k.count += n
	if at != (place{}) && len(k.places) < maxKnownPlaces && !slices.Contains(k.places[max(0, len(k.places)-50):], at) {
		k.places = append(k.places, at)
	}
}

// followSections makes places name the heading above them, or else the paragraph, until settle is called.
func (o *omissions) followSections() {
	o.sections, o.at.paragraph = true, 1
}

// pass follows a block of a document that is read.
func (o *omissions) pass(isHeading bool, text string) {
	switch {
	case !o.sections:
	case isHeading:
		o.at.section = named("section", text).name
	default:
		o.at.paragraph++
	}
}

// settle says where things are: on their pages, or if the document's pages are not known, in their sections.
func (o *omissions) settle(hasPages bool) {
	for _, k := range o.kinds {
		var places []place
		for _, at := range k.places {
			at = at.settled(hasPages)
			if !slices.Contains(places[max(0, len(places)-50):], at) {
				places = append(places, at)
			}
		}
		k.places = places
	}
	for i := range o.pictures {
		o.pictures[i].at = o.pictures[i].at.settled(hasPages)
	}
}

func (p place) settled(hasPages bool) place {
	switch {
	case hasPages && p.word == "page":
		return numbered("page", p.n)
	case p.section != "":
		return named("section", p.section)
	case p.paragraph > 0:
		return numbered("paragraph", p.paragraph)
	}
	return p
}

// list returns the omissions in the order in which their kinds were met. It is never nil.
func (o *omissions) list() []Omission {
	all := make([]Omission, 0, len(o.kinds))
	for _, k := range o.kinds {
		one := Omission{Kind: k.name, Count: k.count, Where: where(k.places)}
		if k.name == picture && o.isReadable && !o.withPictures {
			one.Remedy = OCRSetting + " would have them read"
		}
		all = append(all, one)
	}
	return all
}

// where returns places as text: "pages 3–5, 9", "sheets Sales, Costs", "page 2, attachment notes.zip".
func where(places []place) string {
	var parts []string // of the text; places of one word follow each other
	named, left := 0, 0
	for i := 0; i < len(places); {
		first := i
		for i++; i < len(places) && places[i].word == places[first].word; i++ { //nolint:revive // finds the end
		}
		names := placeNames(places[first:i])
		fits := min(len(names), maxPlaceNames-named)
		left += len(names) - fits
		if named += fits; fits == 0 {
			continue
		}
		word := places[first].word
		if i-first > 1 {
			word = pluralKind(word)
		}
		parts = append(parts, strings.TrimSpace(word+" "+strings.Join(names[:fits], ", ")))
	}
	text := strings.Join(parts, ", ")
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}

// placeNames returns the names of places of one word. Numbers that follow each other become a range.
func placeNames(places []place) (names []string) {
	for i := 0; i < len(places); i++ {
		if places[i].n == 0 {
			names = append(names, places[i].name)
			continue
		}
		first := i
		for i+1 < len(places) && places[i+1].n == places[i].n+1 {
			i++
		}
		name := fmt.Sprint(places[first].n)
		if i > first {
			name += "–" + fmt.Sprint(places[i].n)
		}
		names = append(names, name)
	}
	return names
}

// clipped returns the beginning of a text, of at most so many bytes.
func clipped(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-len("…")], "") + "…"
}

// Limits of reading the pictures in a document.
const (
	MaxPictures  = 2000 // of a document that are listed; OCR reads fewer
	maxPartBytes = 200
)

// The mark of a picture is its index between two characters that no text has.
const (
	markBegins = "\ufdd0"
	markEnds   = "\ufdd1"
)

// Picture is a picture in a document that OCR may read. A mark in the text stands in its place.
type Picture struct {
	Part  string `json:"part"`            // says to Ready.Picture which picture it is
	Named bool   `json:"named,omitempty"` // the text has an alternative text of it

	// The place of the picture.
	Word string `json:"word,omitempty"`
	N    int    `json:"n,omitempty"`
	Name string `json:"name,omitempty"`
}

func (p Picture) place() place { return place{word: p.Word, n: p.N, name: p.Name} }

// Check returns an error if a picture, which may come from a hostile document, is not within the limits.
func (p Picture) Check() error {
	text := p.Part + p.Word + p.Name
	if p.Part == "" || len(p.Part) > maxPartBytes || len(p.Word) > maxKindBytes || len(p.Name) > maxKindBytes || p.N < 0 ||
		strings.ContainsFunc(text, unicode.IsControl) || strings.ToValidUTF8(text, "") != text {
		return fmt.Errorf("the picture %.200q is not within the limits", text)
	}
	return nil
}

// picture notes a picture, unless it is shown by its alternative text, and returns the mark for its place if OCR will
// read it. part is where its bytes are; empty: it is not known, or OCR does not read its format.
func (o *omissions) picture(part string, named bool) (mark string) {
	isRead := part != "" && len(part) <= maxPartBytes
	if !named {
		o.add(picture)
		o.isReadable = o.isReadable || isRead
	}
	if !isRead || !o.withPictures || len(o.pictures) == MaxPictures {
		return ""
	}
	o.pictures = append(o.pictures, notedPicture{part, named, o.at})
	return markBegins + strconv.Itoa(len(o.pictures)-1) + markEnds
}

// notedPicture is a picture that OCR will read.
type notedPicture struct {
	part  string
	named bool
	at    place
}

// listPictures returns the pictures that OCR will read.
func (o *omissions) listPictures() (all []Picture) {
	for _, p := range o.pictures {
		all = append(all, Picture{Part: p.part, Named: p.named, Word: p.at.word, N: p.at.n, Name: p.at.name})
	}
	return all
}

// htmlPictures tells where the bytes of a page's pictures are.
type htmlPictures struct {
	chapter string   // the part of a book that is read; empty: the page is no part of a book
	data    []string // sources of pictures that stand in the page
}

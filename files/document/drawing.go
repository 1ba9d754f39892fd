package document

import (
	"regexp"
	"strconv"
	"strings"
)

// drawing reads DrawingML: the texts, tables, diagrams and charts of slides, sheets and documents.
type drawing struct {
	archive *archive
	links   map[string]relation // of the part that is read
	md      *markdown
	cells   func(reference string) []string // values of the workbook that the part is in; nil if it is in none
}

// paragraphs reads a body of text. If isList is set, its paragraphs are list items unless they say otherwise.
func (d *drawing) paragraphs(x *xmlReader, md *markdown, isList bool) error {
	var counts [maxListLevels]int
	return x.find("a:p", func(element) error {
		p := &slideParagraph{text: &inline{budget: d.archive.budget}, bullet: isList}
		if err := d.inlines(x, p); err != nil {
			return err
		}
		p.write(md, &counts)
		return nil
	})
}

type slideParagraph struct {
	text   *inline
	level  int
	bullet bool
	number bool
	start  int
}

func (p *slideParagraph) write(md *markdown, counts *[maxListLevels]int) {
	if p.text.isEmpty() {
		return
	}
	b := block{code: p.text.isCode() && !md.flat && !p.number, item: p.bullet || p.number, level: p.level}
	clear(counts[p.level+1:])
	if p.number {
		if counts[p.level] == 0 {
			counts[p.level] = p.start - 1
		}
		counts[p.level]++
		b.label = strconv.Itoa(counts[p.level]) + "."
	} else {
		counts[p.level] = 0
	}
	md.put(b, p.text)
}

func (p *slideParagraph) properties(props *tree) {
	p.level = min(max(number(props.attr("lvl"), 0), 0), maxListLevels-1)
	p.bullet = (p.bullet || props.at("a:buChar") != nil || props.at("a:buBlip") != nil) && props.at("a:buNone") == nil
	if auto := props.at("a:buAutoNum"); auto != nil {
		p.number, p.start = true, max(number(auto.attr("startAt"), 1), 1)
	}
}

func (d *drawing) inlines(x *xmlReader, p *slideParagraph) error {
	return x.each(func(e element) error {
		switch e.name {
		case "a:pPr":
			return x.tree(e, p.properties)
		case "a:r", "a:fld":
			return d.run(x, p)
		case "a:br":
			p.text.add("\n", style{})
		case "m:oMath":
			return formula(x, p.text)
		case "a:rPr", "a:endParaRPr", "mc:Fallback":
			return nil
		}
		return d.inlines(x, p)
	})
}

func (d *drawing) run(x *xmlReader, p *slideParagraph) error {
	var look style
	return x.each(func(e element) error {
		switch e.name {
		case "a:rPr":
			return x.tree(e, func(props *tree) { look = d.look(props) })
		case "a:t":
			text, err := x.text()
			p.text.addWords(text, look)
			return err
		}
		return nil
	})
}

func (d *drawing) look(props *tree) style {
	strike := props.attr("strike")
	look := style{
		code:   isCodeFont(props.at("a:latin").attr("typeface")),
		struck: strike == "sngStrike" || strike == "dblStrike",
		raised: number(props.attr("baseline"), 0) > 0,
	}
	if link := d.links[props.at("a:hlinkClick").attr("r:id")]; link.external {
		look.href = link.target
	}
	return look
}

func (d *drawing) table(x *xmlReader) error {
	var rows []row
	err := x.find("a:tr", func(element) error {
		var r row
		err := x.find("a:tc", func(element) error {
			md := newFlat(d.archive.budget)
			err := d.paragraphs(x, md, false)
			r.add(d.archive.budget, md.text(), 1)
			return err
		})
		rows = append(rows, r)
		return err
	})
	d.md.table(rows)
	return err
}

var isMedia = setOf("a:videoFile a:audioFile a:wavAudioFile a:quickTimeFile a:audioCd")

// alternative returns the alternative text in an element's attributes. The name of a picture's file is none.
func alternative(e element) string {
	for _, name := range []string{"descr", "title", "alt"} {
		if text := onOneLine(e.attr(name)); text != "" && !pictureFile.MatchString(text) {
			return text
		}
	}
	return ""
}

var pictureFile = regexp.MustCompile(`(?i)^\S+\.(?:png|jpe?g|jfif|gif|bmp|tiff?|emf|wmf|svg|webp|heic)$`)

// commentText returns a comment as it is shown: Comment by Ada on B2: is that right? author and place may be empty.
func commentText(author, at, text string) string {
	shown := "Comment"
	if author = onOneLine(author); author != "" {
		shown += " by " + author
	}
	if at != "" {
		shown += " on " + at
	}
	return shown + ": " + strings.TrimSpace(text)
}

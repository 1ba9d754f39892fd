package document

import (
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pictured is a document of which OCR will read the pictures.
type pictured struct{ io.ReaderAt }

var pictureMarks = regexp.MustCompile(` ?` + markBegins + `([0-9]{1,4})` + markEnds)

// pictureFormats are extensions of pictures that OCR reads.
var pictureFormats = setOf("png jpg jpeg jfif tif tiff webp gif bmp")

// picturePart returns the name of a part with a picture, or "" if OCR does not read its format.
func picturePart(name string) string {
	if !pictureFormats[strings.TrimPrefix(strings.ToLower(path.Ext(name)), ".")] {
		return ""
	}
	return name
}

// part returns where the bytes of a picture are, by its source: its number among the pictures that stand in a page, or
// a part of a book. It is empty for other sources.
func (h *htmlPictures) part(source string) string {
	isData := strings.HasPrefix(strings.ToLower(source), "data:image/")
	switch {
	case isData && h.chapter == "":
		h.data = append(h.data, source)
		return strconv.Itoa(len(h.data) - 1)
	case h.chapter == "" || isData || strings.Contains(source, ":"):
		return ""
	}
	source, _, _ = strings.Cut(source, "#")
	if unescaped, err := url.PathUnescape(source); err == nil {
		source = unescaped
	}
	return picturePart(resolve(h.chapter, source))
}

// The first line of the text of a picture, and the last one. Within a line, the text stands in the brackets.
const (
	pictureBegins = "[Picture, read by OCR]"
	pictureWithin = "[Picture, read by OCR: "
	pictureEnds   = "[End of the picture]"
)

// WithPictures returns the text with what OCR read in its pictures, by their indexes in Pictures, in place of their
// marks. why says why others have no text. *UnreadableError if there is no text at all, or too much.
func (t Text) WithPictures(read map[int]string, program, why string) (Text, error) {
	w := &pictureWriter{read: read, pages: t.Pages}
	for line := range strings.SplitSeq(strings.TrimSuffix(t.Text, "\n"), "\n") {
		if w.line(line); w.b.Len() > MaxTextBytes {
			return Text{}, tooMuchText()
		}
	}
	out := t
	out.Text, out.Pages, out.Pictures = strings.TrimRight(w.b.String(), "\n")+"\n", w.begins, nil
	out.Omitted = t.withoutRead(read, clipped(why, maxRemedyBytes))
	if isBlank(out.Text) {
		return Text{}, textless(out.Omitted)
	}
	var places []place
	some := false
	for i, p := range t.Pictures {
		if at := p.place(); !isBlank(read[i]) {
			some = true
			if at != (place{}) && !slices.Contains(places, at) {
				places = append(places, at)
			}
		}
	}
	if some {
		text := "pictures"
		if at := where(places); at != "" {
			text = clipped("pictures: "+at, maxWhereBytes)
		}
		out.ReadBy = append(slices.Clip(out.ReadBy), ReadBy{ByOCR, program, text})
	}
	return out, nil
}

// withoutRead returns what the text leaves out, but for the pictures that were read.
func (t Text) withoutRead(read map[int]string, why string) []Omission {
	listed, gone := 0, 0
	var unread []place
	for i, p := range t.Pictures {
		switch at := p.place(); {
		case p.Named:
			continue
		case !isBlank(read[i]):
			gone++
		case at != (place{}) && !slices.Contains(unread, at):
			unread = append(unread, at)
		}
		listed++
	}
	all := []Omission{}
	for _, o := range t.Omitted {
		if o.Kind == picture {
			if o.Count == listed {
				o.Where = where(unread)
			}
			if o.Count -= gone; listed > gone {
				o.Remedy = why
			}
		}
		if o.Count > 0 {
			all = append(all, o)
		}
	}
	return all
}

// pictureWriter writes a text with what was read in its pictures, line by line.
type pictureWriter struct {
	read  map[int]string
	pages []int // lines of the old text on which its pages begin

	b          strings.Builder
	seen, put  int   // lines of the old text, and of the new one
	begins     []int // of the pages, in the new text
	wasDropped bool  // the line before had nothing but pictures without text
}

func (w *pictureWriter) write(line string) {
	w.put++
	w.b.WriteString(line + "\n")
}

func (w *pictureWriter) line(line string) {
	w.seen++
	for len(w.begins) < len(w.pages) && w.pages[len(w.begins)] <= w.seen {
		w.begins = append(w.begins, w.put+1)
	}
	rest := pictureMarks.ReplaceAllString(line, "")
	wasDropped := w.wasDropped
	w.wasDropped = false
	switch {
	case rest == line && line == "" && wasDropped: // the empty line behind it
	case rest == line:
		w.write(line)
	case isBlank(rest):
		w.blocks(line)
	default:
		shown := pictureMarks.ReplaceAllStringFunc(line, func(mark string) string {
			text := onOneLine(w.textOf(mark))
			if strings.HasPrefix(rest, "|") {
				text = strings.ReplaceAll(text, "|", `\|`)
			}
			if text == "" {
				return ""
			}
			return " " + pictureWithin + text + "]"
		})
		if w.wasDropped = shown == rest && onlyBullet.MatchString(rest); !w.wasDropped {
			w.write(strings.TrimRight(strings.ReplaceAll(shown, "  "+pictureWithin, " "+pictureWithin), " "))
		}
	}
}

// onlyBullet matches a line that is a list item or a heading without a text.
var onlyBullet = regexp.MustCompile(`^[\s>]*(?:[-*]|\d+[.)]|#+)\s*$`)

// textOf returns what was read in the picture of a mark.
func (w *pictureWriter) textOf(mark string) string {
	index, err := strconv.Atoi(pictureMarks.FindStringSubmatch(mark)[1])
	if err != nil {
		return ""
	}
	return tidyLines(strings.Map(plain, lineEnds.Replace(w.read[index])))
}

// blocks writes the texts of pictures that have a line of their own.
func (w *pictureWriter) blocks(line string) {
	w.wasDropped = true
	for _, mark := range pictureMarks.FindAllString(line, -1) {
		text := w.textOf(mark)
		if text == "" {
			continue
		}
		w.wasDropped = false
		w.write(pictureBegins)
		for one := range strings.SplitSeq(text, "\n") {
			w.write(one)
		}
		w.write(pictureEnds)
	}
}

// resolve returns the name in the archive of the target that a part names.
func resolve(part, target string) string {
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(path.Clean(target), "/")
	}
	return strings.TrimPrefix(path.Join("/", path.Dir(part), target), "/")
}

package document

import (
	"regexp"
	"strings"
)

// property is what a document says of itself, such as its title.
type property struct{ label, value string }

// Labels of properties, in the order in which they are written.
const (
	titleLabel    = "Title"
	subjectLabel  = "Subject"
	authorLabel   = "Author"
	keywordsLabel = "Keywords"
)

const maxPropertyBytes = 1000

// properties are what a document says of itself.
type properties []property

// add adds a property. Several values of a label stand behind each other.
func (p *properties) add(label, value string) {
	if value = clipped(onOneLine(value), maxPropertyBytes); value == "" {
		return
	}
	for i, known := range *p {
		if known.label == label {
			if joined := known.value + ", " + value; known.value != value && len(joined) <= maxPropertyBytes {
				(*p)[i].value = joined
			}
			return
		}
	}
	*p = append(*p, property{label, value})
}

// lines returns the properties for the end of a document with a text. Programs name files, and authors of documents
// that have none; such names are left out, and what the text says itself.
func (p properties) lines(text string) (lines []string) {
	text = strings.ToLower(onOneLine(text))
	for _, label := range []string{titleLabel, subjectLabel, authorLabel, keywordsLabel} {
		for _, one := range p {
			value := strings.TrimSpace(strings.TrimPrefix(one.value, "Microsoft Word - "))
			isNamed := label == titleLabel && strings.Contains(text, strings.ToLower(value))
			isFile := label == titleLabel && documentFile.MatchString(value)
			if one.label == label && !isNamed && !isFile && !isPlaceholder[strings.ToLower(value)] {
				lines = append(lines, label+": "+value)
			}
		}
	}
	return lines
}

var documentFile = regexp.MustCompile(`(?i)^\S+\.(?:html?|docx?|pptx?|xlsx?|od[tps]|pdf|txt|md|tex|dvi|indd|ps)$`)

// isPlaceholder are properties that programs fill in by themselves.
var isPlaceholder = func() map[string]bool {
	all := map[string]bool{}
	for _, value := range []string{"untitled", "(anonymous)", "anonymous", "unknown", "unknown author",
		"powerpoint presentation", "word document", "python-docx", "openpyxl", "apache poi", "windows user",
		"microsoft office user", "user", "admin",
		"administrator", "unnamed", "author", "unspecified", "(unspecified)"} {
		all[value] = true
	}
	return all
}()

// read reads the properties of an Office document or an OpenDocument. An OpenDocument says who made it, and then who
// changed it last.
func (p *properties) read(x *xmlReader) error {
	var made, changed properties
	err := p.within(x, &made, &changed)
	if len(made) == 0 {
		made = changed
	}
	*p = append(*p, made...)
	return err
}

func (p *properties) within(x *xmlReader, made, changed *properties) error {
	return x.each(func(e element) error {
		to, label := p, propertyLabels[e.name]
		switch e.name {
		case "coreProperties", "office:document-meta", "office:meta":
			return p.within(x, made, changed)
		case "initial-creator":
			to = made
		case "creator":
			to = changed
		}
		if label == "" {
			return nil
		}
		text, err := x.text()
		to.add(label, text)
		return err
	})
}

// propertyLabels maps elements to labels.
var propertyLabels = map[string]string{"title": titleLabel, "subject": subjectLabel, "initial-creator": authorLabel,
	"creator": authorLabel, "keywords": keywordsLabel, "keyword": keywordsLabel}

package tool

import (
	"regexp"
	"strings"
)

// pythonDoc is the content of a docstring: the text before all sections, and the descriptions of arguments by name. The
// docstring has the style of Google, numpy or Sphinx.
type pythonDoc struct {
	summary   string
	arguments map[string]string
}

// docSection is a section of a docstring. The text before all sections is a section without a style.
type docSection struct {
	style docStyle
	head  string
	lines []string // without the head, except in Sphinx's style
}

type docStyle string

const (
	googleStyle docStyle = "google"
	numpyStyle  docStyle = "numpy"
	sphinxStyle docStyle = "sphinx"
)

const docHeads = `Args|Arguments|(?:Other )?Parameters|Params|Keyword Arg(?:ument)?s|Returns?|Yields?|Raises|` +
	`Receives|Warns|Examples?|Notes?|References|Attributes|Methods|Warnings?|See Also|Todo`

var (
	googleHead = regexp.MustCompile(`^(` + docHeads + `):\s*$`)
	numpyHead  = regexp.MustCompile(`^(` + docHeads + `)$`)
	numpyLine  = regexp.MustCompile(`^[-=]{3,}$`)

	sphinxField = regexp.MustCompile(`^:(param|parameter|arg|argument|key|keyword|type|raises?|except|exception|var|` +
		`ivar|cvar|vartype|returns?|rtype|yields?|meta)\b([^:]*):\s*(.*)$`)
	aboutArguments = regexp.MustCompile(`^(Arg|Param|Other Param|Keyword|param|arg|key)`)
)

// readDocstring reads a docstring without indentation.
func readDocstring(doc string) pythonDoc {
	read := pythonDoc{arguments: map[string]string{}}
	for _, s := range docSections(strings.Split(doc, "\n")) {
		if s.style == "" {
			read.summary = strings.TrimSpace(strings.Join(s.lines, "\n"))
		}
		if !aboutArguments.MatchString(s.head) {
			continue
		}
		arguments := map[docStyle]func(docSection) map[string][]string{googleStyle: docSection.ofGoogle,
			numpyStyle: docSection.ofNumpy, sphinxStyle: docSection.ofSphinx}[s.style](s)
		for name, lines := range arguments {
			read.arguments[name] = strings.TrimSpace(strings.Join(lines, " "))
		}
	}
	return read
}

// docSections splits the lines of a docstring.
func docSections(lines []string) []docSection {
	all := []docSection{{}}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		last := &all[len(all)-1]
		switch numpy := numpyHead.FindStringSubmatch(strings.TrimSpace(line)); {
		case googleHead.MatchString(line):
			all = append(all, docSection{style: googleStyle, head: googleHead.FindStringSubmatch(line)[1]})
		case numpy != nil && i+1 < len(lines) && numpyLine.MatchString(strings.TrimSpace(lines[i+1])):
			all = append(all, docSection{style: numpyStyle, head: numpy[1]})
			i++
		case sphinxField.MatchString(line):
			all = append(all, docSection{sphinxStyle, sphinxField.FindStringSubmatch(line)[1], []string{line}})
		case last.style == sphinxStyle && strings.TrimSpace(line) == "": // an empty line ends the text of the field
			all = append(all, docSection{style: sphinxStyle})
		default:
			last.lines = append(last.lines, line)
		}
	}
	return all
}

// docArgument matches the first line of an argument in Google's style: its name, perhaps a type, and its description.
var docArgument = regexp.MustCompile(`^\*{0,2}([A-Za-z_]\w*)\s*(?:\([^)]*\))?\s*:\s*(.*)$`)

// ofGoogle returns, for each argument of a section in Google's style, the lines that describe it. A line with less
// indentation than the first one ends the section.
func (s docSection) ofGoogle() map[string][]string {
	lines, name, depth := map[string][]string{}, "", -1
	for _, line := range s.lines {
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		if depth < 0 {
			depth = indent(line)
		}
		switch m := docArgument.FindStringSubmatch(text); {
		case indent(line) < depth:
			return lines
		case m != nil && indent(line) == depth:
			name = m[1]
			lines[name] = []string{m[2]}
		case name != "":
			lines[name] = append(lines[name], text)
		}
	}
	return lines
}

// numpyArgument matches the line in numpy's style that names one or more arguments, perhaps with their type.
var numpyArgument = regexp.MustCompile(`^(\*{0,2}[A-Za-z_]\w*(?:\s*,\s*\*{0,2}[A-Za-z_]\w*)*)\s*(?::.*)?$`)

// ofNumpy returns, for each argument of a section in numpy's style, the lines that describe it. These lines are
// indented more than the name of the argument.
func (s docSection) ofNumpy() map[string][]string {
	lines, names, depth := map[string][]string{}, []string{}, -1
	for _, line := range s.lines {
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		if depth < 0 {
			depth = indent(line)
		}
		if indent(line) > depth {
			for _, name := range names {
				lines[name] = append(lines[name], text)
			}
			continue
		}
		names = nil
		if m := numpyArgument.FindStringSubmatch(text); m != nil && indent(line) == depth {
			for name := range strings.SplitSeq(m[1], ",") {
				names = append(names, strings.TrimLeft(strings.TrimSpace(name), "*"))
			}
		}
	}
	return lines
}

// ofSphinx returns the lines that describe the argument of a field in Sphinx's style. The field names the argument
// last, after its type.
func (s docSection) ofSphinx() map[string][]string {
	m := sphinxField.FindStringSubmatch(s.lines[0])
	words := strings.Fields(m[2])
	if len(words) == 0 {
		return nil
	}
	lines := []string{m[3]}
	for _, line := range s.lines[1:] {
		lines = append(lines, strings.TrimSpace(line))
	}
	return map[string][]string{strings.TrimLeft(words[len(words)-1], "*\\"): lines}
}

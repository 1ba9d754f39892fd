// Command words finds phrases in comments that make a reader go back; the pattern phrases lists them. It reads the Go
// files in the given folders, and prints each place. It ends with status 1 if there is more than one such phrase in a
// thousand words of comment.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	phrases = regexp.MustCompile(`(?i)\b(of which|that of|those which|what it is|whose)\b`)
	spaces  = regexp.MustCompile(`\s+`)
)

// count counts the words in comments, and holds the places of the phrases.
type count struct {
	words  int
	places []string
}

func main() {
	var total count
	for _, root := range os.Args[1:] {
		if err := total.addFolder(root); err != nil {
			fmt.Fprintln(os.Stderr, "words:", err)
			os.Exit(2)
		}
	}
	if total.words == 0 {
		fmt.Fprintln(os.Stderr, "words: there are no comments in", strings.Join(os.Args[1:], " "))
		os.Exit(2)
	}
	if len(total.places)*1000 <= total.words {
		return
	}
	for _, place := range total.places {
		fmt.Println(place)
	}
	fmt.Printf("%d phrases that make a reader go back in %d words of comment; at most 1 in 1,000 is accepted\n",
		len(total.places), total.words)
	os.Exit(1)
}

func (c *count) addFolder(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		return c.addFile(path)
	})
}

func (c *count) addFile(path string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	for _, group := range file.Comments {
		text := spaces.ReplaceAllString(group.Text(), " ") // a phrase may stand on two lines
		c.words += len(strings.Fields(text))
		for _, match := range phrases.FindAllStringIndex(text, -1) {
			excerpt := text[max(0, match[0]-30):min(len(text), match[1]+30)]
			c.places = append(c.places, fmt.Sprintf("%s: …%s…", set.Position(group.Pos()), strings.ToValidUTF8(excerpt, "")))
		}
	}
	return nil
}

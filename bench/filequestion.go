package main

// folder is a folder of documents to upload.
type folder struct {
	name  string
	files []fileText
}

type fileText struct{ name, text string }

// fileQuestion is a question with the place of its answer in a file: lines, or the text below a heading.
type fileQuestion struct {
	text        string
	file        string
	heading     string // empty if the lines are known
	first, last int
}

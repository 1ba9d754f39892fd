package main

// folder is documents to upload.
type folder struct {
	name  string
	files []fileText
}

type fileText struct{ name, text string }

// fileQuestion is a question, and where its answer stands in a file: on lines, or below a heading of its text.
type fileQuestion struct {
	text        string
	file        string
	heading     string // empty where the lines are known
	first, last int
}

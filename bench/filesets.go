package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
)

// fileSet is questions that are asked of some folders together.
type fileSet struct {
	name      string
	folders   []*folder
	questions []fileQuestion
	from, to  float64 // the percentage that is found in the first ten hits, as measured, and some more or less
	skipped   string  // why it is not measured; empty if it is
}

// askedTitles is how many titles of a manual are asked, and askedFunctions how many functions.
const (
	askedTitles    = 800
	askedFunctions = 1000
)

// fileSets returns the sets of questions.
//
// Of pgdocs and pydocs, each question is the title of a section, which its page then lacks; its answer is the text up
// to the next heading. Tables of contents are left out, because they repeat the titles. Of pyfaq, the questions
// are those of the FAQ, once asked of pages that have them, and once of pages that do not; beside these stands the
// whole manual.
// Of gostd, each is what a function's comment says.
func fileSets(ctx context.Context) ([]fileSet, error) {
	pgdocs := fileSet{name: "pgdocs", from: 79, to: 82}
	pydocs := fileSet{name: "pydocs", from: 71, to: 74}
	faq := fileSet{name: "pyfaq", from: 95, to: 99}
	bare := fileSet{name: "pyfaq, without questions", from: 47, to: 52}
	gostd := fileSet{name: "gostd", from: 65, to: 69}
	if err := pgdocs.titles("postgresql", postgresManual()); err != nil {
		return nil, err
	}
	if err := pythonSets(&pydocs, &faq, &bare); err != nil {
		return nil, err
	}
	sources, questions, err := goLibrary(ctx)
	gostd.folders, gostd.questions = []*folder{&sources}, some(questions, askedFunctions)
	return []fileSet{pgdocs, pydocs, faq, bare, gostd}, err
}

// titles asks for sections of a manual by their titles.
func (s *fileSet) titles(name string, m manual) error {
	pages, err := m.pages()
	if errors.Is(err, errNotInstalled) {
		s.skipped = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	s.questions = untitled(some(askable(pages), askedTitles))
	f, err := rendered(name, pages)
	s.folders = []*folder{f}
	return err
}

// pythonSets makes the sets of the Python manual.
func pythonSets(pydocs, faq, bare *fileSet) error {
	pages, err := pythonManual().pages()
	if errors.Is(err, errNotInstalled) {
		for _, s := range []*fileSet{pydocs, faq, bare} {
			s.skipped = err.Error()
		}
		return nil
	}
	if err != nil {
		return err
	}
	var others, ofFAQ []*page
	asIs := &folder{name: "faq"}
	var asked []sectionOf
	for _, p := range pages {
		if !strings.HasPrefix(p.name, "faq-") {
			others = append(others, p)
			continue
		}
		ofFAQ = append(ofFAQ, p)
		asIs.files = append(asIs.files, fileText{p.name, p.raw})
		for _, s := range p.sections {
			if s.level > 1 && s.lowest && s.chars > 0 {
				asked = append(asked, sectionOf{p, s})
				faq.questions = append(faq.questions, fileQuestion{text: s.title, file: p.name, heading: s.title})
			}
		}
	}
	pydocs.questions = untitled(some(askable(others), askedTitles))
	bare.questions = untitled(asked)
	manual, err := rendered("python", others)
	if err != nil {
		return err
	}
	without, err := rendered("faq without questions", ofFAQ)
	pydocs.folders, bare.folders = []*folder{manual, without}, []*folder{manual, without}
	faq.folders = []*folder{manual, asIs}
	return err
}

// some returns at most n of a list, always the same ones of the same list.
func some[T any](list []T, n int) []T {
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(n, len(list))]
}

// untitled removes the titles of sections and returns the questions for them.
func untitled(sections []sectionOf) []fileQuestion {
	headings := make([]string, len(sections))
	for i, s := range sections {
		headings[i] = s.untitle(i)
	}
	questions := make([]fileQuestion, len(sections)) // of pages whose names no longer change
	for i, s := range sections {
		questions[i] = fileQuestion{text: s.section.title, file: s.name, heading: headings[i]}
	}
	return questions
}

func rendered(name string, pages []*page) (*folder, error) {
	f := &folder{name: name}
	for _, p := range pages {
		text, err := p.render()
		if err != nil {
			return nil, err
		}
		f.files = append(f.files, fileText{p.name, text})
	}
	return f, nil
}

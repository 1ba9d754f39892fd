package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
)

// fileSet is a set of questions about some folders together.
type fileSet struct {
	name      string
	folders   []*folder
	questions []fileQuestion
	from, to  float64 // expected range of the percentage of answers among the first ten hits, with some tolerance
	skipped   string  // why the set is not measured; empty if it is
}

// How many titles of a manual, and how many functions, questions are about.
const (
	askedTitles    = 800
	askedFunctions = 1000
)

// fileSets returns the sets of questions.
//
// In pgdocs and pydocs, each question is the title of a section, and its page lacks that title; the answer is the text
// up to the next heading. Tables of contents are left out, because they repeat the titles.
//
// In pyfaq, the questions come from the FAQ. They are asked once with pages that contain the questions, and once with
// pages that do not; the whole manual is in the folder too.
//
// In gostd, each question is the comment of a function.
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

// titles adds questions for sections of a manual: their titles.
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

// pythonSets fills the sets about the Python manual.
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
	var otherPages, ofFAQ []*page
	asIs := &folder{name: "faq"}
	var faqSections []sectionOf
	for _, p := range pages {
		if !strings.HasPrefix(p.name, "faq-") {
			otherPages = append(otherPages, p)
			continue
		}
		ofFAQ = append(ofFAQ, p)
		asIs.files = append(asIs.files, fileText{p.name, p.raw})
		for _, s := range p.sections {
			if s.level > 1 && s.lowest && s.chars > 0 {
				faqSections = append(faqSections, sectionOf{p, s})
				faq.questions = append(faq.questions, fileQuestion{text: s.title, file: p.name, heading: s.title})
			}
		}
	}
	pydocs.questions = untitled(some(askable(otherPages), askedTitles))
	bare.questions = untitled(faqSections)
	manual, err := rendered("python", otherPages)
	if err != nil {
		return err
	}
	withoutQuestions, err := rendered("faq without questions", ofFAQ)
	pydocs.folders, bare.folders = []*folder{manual, withoutQuestions}, []*folder{manual, withoutQuestions}
	faq.folders = []*folder{manual, asIs}
	return err
}

// some returns at most n items of a list, always the same items of the same list.
func some[T any](list []T, n int) []T {
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(n, len(list))]
}

// untitled removes the titles of sections, and returns the questions about them.
func untitled(sections []sectionOf) []fileQuestion {
	headings := make([]string, len(sections))
	for i, s := range sections {
		headings[i] = s.untitle(i)
	}
	questions := make([]fileQuestion, len(sections)) // created now, because the names of pages no longer change
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

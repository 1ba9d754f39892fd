package files_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
)

// A document that takes long shows how many of its pages are read. Pages that OCR read in an attempt that ended are not
// read again, and are deleted once the file has its text.
func TestALongDocumentGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"scan.pdf": "%PDF-1.7\n1 0 obj\n",
		"pictures.ipynb": `{"nbformat": 4, "metadata": {}, "cells": []}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testGoesOn(t, name, body)
		})
	}
}

func testGoesOn(t *testing.T, name, body string) {
	t.Helper()
	begun, goOn := make(chan struct{}), make(chan struct{})
	attempts := 0
	readBy := []document.ReadBy{{Kind: "OCR", Program: "tesseract", Where: "pages 1–3"}}
	fx := newOwnFixture(t, files.Options{Read: func(ctx context.Context, in document.Input) (document.Text, error) {
		if attempts++; attempts > 1 {
			return document.Text{Text: in.Log.Kept[1] + " again", Pages: []int{1}, Omitted: []document.Omission{},
				ReadBy: readBy}, nil
		}
		err := in.Log.Keep(ctx, 1, "page one")
		in.Log.Read(1, 3)
		close(begun)
		<-goOn
		if err == nil {
			err = document.ErrGoesOn
		}
		return document.Text{}, err
	}}, files.Queues())
	folder := fx.folder("docs")
	f, _, err := fx.Upload(t.Context(), fx.org, folder.ID, files.Upload{Name: name,
		Body: strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	f, err = fx.File(t.Context(), fx.org, folder.ID, f.ID, false)
	if err != nil || f.PagesRead == nil || *f.PagesRead != 1 || f.TotalPages == nil || *f.TotalPages != 3 ||
		f.Status != files.Parsing {
		t.Errorf("meanwhile the file is %+v, %v, want 1 of 3 pages", f, err)
	}
	close(goOn)
	f = fx.await(folder, f)
	if got := fx.content(folder, f); got != "page one again" || f.PagesRead != nil || *f.TotalPages != 1 {
		t.Errorf("got %q, %+v", got, f)
	}
	if diff := cmp.Diff(readBy, f.ReadBy); diff != "" {
		t.Errorf("read by (-want +got):\n%s", diff)
	}
	if left, err := db.One[int](t.Context(), fx.pool, `
		SELECT count(*) FROM read_pages WHERE org = $1`, fx.org); left > 0 || err != nil {
		t.Errorf("%d pages are left, %v", left, err)
	}
	list, err := fx.List(t.Context(), fx.org, files.Of(fx.agentWith(folder)), files.ListQuery{Limit: 10})
	if err != nil || len(list.Files) != 1 || list.Files[0].ReadByPrograms() != "OCR (tesseract), pages 1–3" {
		t.Errorf("the listing says %+v, %v", list, err)
	}
}

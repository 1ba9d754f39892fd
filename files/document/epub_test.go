package document_test

import (
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestEPUB(t *testing.T) {
	t.Parallel()
	page := func(body string) string {
		return "<html><head><title>x1</title></head><body>" + body + "</body></html>"
	}
	packaged := func(opf string, parts ...string) []byte {
		return archive(append([]string{"META-INF/container.xml", `<container><rootfiles><rootfile full-path="p.opf"/>` +
			`<rootfile full-path="q.opf"/></rootfiles></container>`,
			"p.opf", "<package>" + opf + "</package>"}, parts...)...)
	}
	item := func(id, href, more string) string {
		return `<item id="` + id + `" href="` + href + `" media-type="application/xhtml+xml" ` + more + `/>`
	}
	spine := func(ids ...string) string {
		all := ""
		for _, id := range ids {
			all += `<itemref idref="` + id + `"/>`
		}
		return "<spine>" + all + "</spine>"
	}
	fonts := `<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/>` +
		`</EncryptedData></encryption>`
	testReads(t, document.EPUB, []readCase{
		{"a book has its title, then its chapters", epub("A Book", "a.xhtml", page("<h2>First</h2><p>a</p>"), "b.xhtml",
			page("<h2>Second</h2><p>b</p>")),
			"# A Book\n\n## First\n\na\n\n## Second\n\nb\n", nil},
		{"a chapter that begins with the title has it once", epub(" A\n Book ", "a.xhtml", page("<h1>A Book</h1><p>a</p>")),
			"# A Book\n\na\n", nil},
		{"a book without a title", epub("", "a.xhtml", page("<p>a</p>")), "a\n", nil},
		{"the order is that of the spine, each chapter once", packaged("<manifest>"+item("a", "a.xhtml", "")+item("b",
			"b.xhtml", "")+"</manifest>"+
			spine("b", "a", "b", "missing"), "a.xhtml", page("<p>a</p>"), "b.xhtml", page("<p>b</p>")), "b\n\na\n", nil},
		{"the table of contents is left out", packaged("<manifest>"+item("n", "n.xhtml",
			`properties="scripted nav"`)+item("a", "a.xhtml", "")+"</manifest>"+
			spine("n", "a"), "n.xhtml", page("<p>contents</p>"), "a.xhtml", page("<p>a</p>")), "a\n", nil},
		{"names are decoded, images are left out", packaged(`<manifest>`+item("a", "one%20a.xhtml",
			"")+`<item id="i" href="i.png" media-type="image/png"/></manifest>`+
			spine("i", "a"), "one a.xhtml", page("<p>a</p>"), "i.png", "PNG"), "a\n", nil},
		{"a chapter that is missing is left out", packaged("<manifest>"+item("a", "a.xhtml", "")+item("b", "b.xhtml",
			"")+"</manifest>"+spine("a", "b"),
			"b.xhtml", page("<p>b</p>")), "b\n", nil},
		{"fonts may be hard to copy", packaged("<manifest>"+item("a", "a.xhtml", "")+"</manifest>"+spine("a"), "a.xhtml",
			page("<p>a</p>"),
			"META-INF/encryption.xml", fonts), "a\n", nil},
		{"a chapter in its own charset", packaged("<manifest>"+item("a", "a.xhtml", "")+"</manifest>"+spine("a"), "a.xhtml",
			`<?xml version="1.0" encoding="windows-1251"?><html><body><p>`+"\xcf\xf0\xe8"+`</p></body></html>`), "При\n", nil},
		{"code with empty lines, and lists", epub("", "a.xhtml", page("<pre>a\n\n\n\nb</pre><ul><li>c</li></ul>")),
			"```\na\n\n\n\nb\n```\n\n- c\n", nil},
	})
	drm := `<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>` +
		`</EncryptedData></encryption>`
	testRefusals(t, document.EPUB, []refusal{
		{"an encrypted book", archive("META-INF/encryption.xml", drm), "rights"},
		{"rights and an encryption", archive("META-INF/rights.xml", "<r/>", "META-INF/encryption.xml", fonts), "rights"},
		{"another archive", archive("a.txt", "x"), "damaged"},
		{"a container without a book", archive("META-INF/container.xml", "<container/>"), "not what its type says"},
		{"a book whose chapters are missing", packaged("<manifest>" + item("a", "a.xhtml", "") + "</manifest>" + spine("a")),
			"missing"},
		{"a book without chapters", packaged("<manifest/><spine/>"), "no text"},
	})
}

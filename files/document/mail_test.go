package document_test

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/loci-memory/loci/files/document"
)

func readMail(t *testing.T, mediaType, raw string) (document.Text, error) {
	t.Helper()
	return reader.Read(t.Context(), document.Input{MediaType: mediaType, SizeBytes: int64(len(raw)),
		Body: strings.NewReader(raw)})
}

const (
	message = "message/rfc822"
	mbox    = "application/mbox"
)

// mail returns a message with CR LF and a body below its header.
func mail(header, body string) string {
	return strings.ReplaceAll(header+"\n\n"+body, "\n", "\r\n")
}

func b64(raw string) string {
	all := base64.StdEncoding.EncodeToString([]byte(raw))
	var b strings.Builder
	for ; len(all) > 76; all = all[76:] {
		b.WriteString(all[:76] + "\n")
	}
	return b.String() + all
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

func TestMailIsRead(t *testing.T) {
	t.Parallel()
	const words = "Dear customer, below you find what we agreed in our last meeting with you in the harbour."
	japaneseText := must(japanese.ISO2022JP.NewEncoder().String("会議は金曜日です"))
	chinese := must(simplifiedchinese.GB18030.NewEncoder().String("会议改到星期五上午十点。请准时参加。"))
	russian := must(charmap.KOI8R.NewEncoder().String("Встреча перенесена на пятницу."))
	for _, tt := range []struct{ claim, raw, want string }{
		{"headers and a Base64 body", mail("Received: by mx\nFrom: =?utf-8?Q?J=C3=BCrgen_M=C3=BCller?= <jm@example.com>\n"+
			"To: a@example.com,\n b@example.com\nCc: c@example.com\nDate: Tue, 14 May 2024 10:00:00 +0200\n"+
			"Subject: =?UTF-8?B?"+b64("Lieferung am 14. Mai – für dich")+"?=\nMIME-Version: 1.0\n"+
			"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64",
			b64("Der Preis ist 12 €.\r\nGrüße\r\n")),
			"# Lieferung am 14. Mai – für dich\n\nFrom: Jürgen Müller <jm@example.com>\nTo: a@example.com, b@example.com\n" +
				"Cc: c@example.com\nDate: Tue, 14 May 2024 10:00:00 +0200\n\nDer Preis ist 12 €.\nGrüße\n"},
		{"quoted-printable with soft breaks", mail("From: a\nContent-Type: text/plain; charset=\"iso-8859-1\"\n"+
			"Content-Transfer-Encoding: Quoted-Printable", "Die Stra=\n=DFe =3D Weg, M=FCll=  \ner, 5 =ZZ"),
			"# (no subject)\n\nFrom: a\n\nDie Straße = Weg, Müller, 5 =ZZ\n"},
		{"windows-1252 that calls itself Latin-1", mail("From: a\nSubject: x\nContent-Type: text/plain; charset=iso-8859-1",
			"\x93yes\x94 \x96 5 \x80"), "# x\n\nFrom: a\n\n“yes” – 5 €\n"},
		{"UTF-8 that calls itself ASCII", mail("From: a\nSubject: x\nContent-Type: text/plain; charset=us-ascii", "grün"),
			"# x\n\nFrom: a\n\ngrün\n"},
		{"koi8-r", mail("From: a\nSubject: =?koi8-r?B?"+b64(russian)+"?=\nContent-Type: text/plain; charset=koi8-r", russian),
			"# Встреча перенесена на пятницу.\n\nFrom: a\n\nВстреча перенесена на пятницу.\n"},
		{"iso-2022-jp", mail("From: a\nSubject: =?iso-2022-jp?B?"+b64(japaneseText)+
			"?=\nContent-Type: text/plain; charset=iso-2022-jp", japaneseText),
			"# 会議は金曜日です\n\nFrom: a\n\n会議は金曜日です\n"},
		{"gb18030, with a character cut between two words", mail("From: a\nSubject: =?gb2312?B?"+b64(chinese[:15])+
			"?=\n =?gb2312?B?"+b64(chinese[15:])+"?=\nContent-Type: text/plain; charset=gb2312\n"+
			"Content-Transfer-Encoding: base64", b64(chinese)),
			"# 会议改到星期五上午十点。请准时参加。\n\nFrom: a\n\n会议改到星期五上午十点。请准时参加。\n"},
		{"UTF-7", mail("From: a\nSubject: =?utf-7?Q?Gr+APwA3w-e?=\nContent-Type: text/plain; charset=utf-7", "1 +- 1, "+
			"+IKw- 5"),
			"# Grüße\n\nFrom: a\n\n1 + 1, € 5\n"},
		{"bytes in a header that nothing declares", mail("From: J\xfcrgen\nSubject: x", "y"), "# x\n\nFrom: Jürgen\n\ny\n"},
		{"format=flowed", mail("From: a\nSubject: x\nContent-Type: text/plain; format=flowed",
			"One \nparagraph.\n> quoted \n> on\nFrom here\n From stuffed\n-- \nme"),
			"# x\n\nFrom: a\n\nOne paragraph.\n> quoted on\nFrom here\nFrom stuffed\n--\nme\n"},
		{"a line without a colon in the header", mail("From: a\nSubject: one\ntwo\nX-Bad header: 1\nTo: b", "body"),
			"# one two X-Bad header: 1\n\nFrom: a\nTo: b\n\nbody\n"},
		{"HTML alone", mail("From: a\nSubject: x\nContent-Type: text/html; charset=utf-8", "<p>A <b>bold</b> step"),
			"# x\n\nFrom: a\n\nA **bold** step\n"},
		{"two versions", multi("alternative", "text/plain", "plain words", "text/html", "<p>plain words"),
			"# x\n\nFrom: a\n\nplain words\n"},
		{"a plain version without words", multi("alternative", "text/plain", " ", "text/html", "<p>Yes, approved."),
			"# x\n\nFrom: a\n\nYes, approved.\n"},
		{"a plain version that is a stub", multi("alternative", "text/plain", "This message requires an HTML reader.",
			"text/html", "<p>Order 4711 ships on Friday, 3 boxes."),
			"# x\n\nFrom: a\n\nOrder 4711 ships on Friday, 3 boxes.\n"},
		{"a plain version without the sum", multi("alternative", "text/plain", "Your invoice is ready. Total: see below.",
			"text/html", "<p>Your invoice is ready. Total: see below.<p>Total due 1,250 EUR"),
			"# x\n\nFrom: a\n\nYour invoice is ready. Total: see below.\n\nTotal due 1,250 EUR\n"},
		{"a version with links of its own", multi("alternative", "text/plain", "The invoice of May is ready for you to read.",
			"text/html", `<p><a href="https://example.com/a/b/c?d=e">The invoice of May</a> is ready for you to read. Hi.`),
			"# x\n\nFrom: a\n\n[The invoice of May](https://example.com/a/b/c?d=e) is ready for you to read. Hi.\n"},
		{"links that the plain version has", multi("alternative", "text/plain", "Our terms: https://example.com/t",
			"text/html", `<p>Our <a href="https://mail.example.com/click?t">terms</a>`),
			"# x\n\nFrom: a\n\nOur terms: https://example.com/t\n"},
		{"a table that only one version has", multi("alternative", "text/plain", words+" The prices of today:",
			"text/html", "<p>"+words+" The prices of today:<table><tr><th>Crane<tr><td>1399 EUR</table>"),
			"# x\n\nFrom: a\n\n" + words + " The prices of today:\n\n| Crane |\n|---|\n| 1399 EUR |\n"},
		{"lines that only one version has, and the other way round", multi("alternative", "text/plain", words+" Code 17.",
			"text/html", "<p>"+words+"<p>Room 4042.<p>Bye."), "# x\n\nFrom: a\n\n" + words + " Code 17.\n\n" +
			"[Only in the HTML of the message:]\nRoom 4042.\nBye.\n"},
		{"a number that only a short plain version has", multi("alternative", "text/plain", "Code 17.\nWelcome here.",
			"text/html", "<p>"+words+" "+words), "# x\n\nFrom: a\n\n" + words + " " + words + "\n\n" +
			"[Only in the plain text of the message:]\nCode 17.\n"},
		{"a plain version that says nothing", multi("alternative", "text/plain", "See HTML.", "text/html",
			"<p>"+strings.Repeat("word ", 15)+"<p>end"), "# x\n\nFrom: a\n\n" + strings.TrimSpace(strings.Repeat("word ", 15)) +
			"\n\nend\n"},
		{"an attachment within one version", multi("alternative", "text/plain", "plain", "multipart/mixed; boundary=c",
			"--c\nContent-Type: text/html\n\n<p>plain\n--c\nContent-Type: text/csv; name=\"t.csv\"\n\na,b\n--c--"),
			"# x\n\nFrom: a\n\nplain\n\n## Attachment: t.csv\n\na,b\n"},
		{"an attached message", multi("mixed", "text/plain", "see below", message, "From: z\nSubject: old\n\nold text"),
			"# x\n\nFrom: a\n\nsee below\n\n## Attached message\n\n## old\n\nFrom: z\n\nold text\n"},
		{"a missing last boundary", strings.TrimSuffix(multi("mixed", "text/plain", "one", "text/plain", "two"), "--b--\r\n"),
			"# x\n\nFrom: a\n\none\n\ntwo\n"},
		{"parts of which no boundary is found", mail("From: a\nSubject: x\nContent-Type: multipart/mixed; boundary=q",
			"text"),
			"# x\n\nFrom: a\n\ntext\n"},
		{"a report", multi("report", "text/plain", "Not delivered.", "message/delivery-status", "Final-Recipient: b"),
			"# x\n\nFrom: a\n\nNot delivered.\n\nFinal-Recipient: b\n"},
		{"a text without any header", "Just a text.\nOf two lines: yes\n", "Just a text.\nOf two lines: yes\n"},
		{"Apple's format", "29\nFrom: a\nSubject: x\n\nbody text\n<?xml version=\"1.0\"?><plist/>\n",
			"# x\n\nFrom: a\n\nbody text\n"},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			got, err := readMail(t, message, tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			checkMarkdown(t, got)
			if diff := cmp.Diff(tt.want, got.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func pdfFile(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/pdf/libreoffice.pdf")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// multi returns a message of parts, given by their types and bodies in turn.
func multi(kind string, parts ...string) string {
	var b strings.Builder
	for i := 0; i < len(parts); i += 2 {
		b.WriteString("--b\nContent-Type: " + parts[i] + "\n\n" + parts[i+1] + "\n")
	}
	return mail("From: a\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/"+kind+"; boundary=\"b\"",
		"preamble\n"+b.String()+"--b--\n")
}

func TestAnMboxHasAHeadingForEachMessage(t *testing.T) {
	t.Parallel()
	raw := "From a@example.com Tue May 14 10:00:00 2024\nFrom: a\nSubject: one\n\nHello.\nFrom here on it is text.\n\n" +
		"From this line too, because no field follows.\nSo\n>From quoted\n>>From twice\n\n" +
		"From b@example.com Tue May 14 11:00:00 2024\nFrom: b\nSubject: two\n\nBye.\n"
	want := "# one\n\nFrom: a\n\nHello.\nFrom here on it is text.\n\nFrom this line too, because no field follows.\nSo\n" +
		"From quoted\n>From twice\n\n# two\n\nFrom: b\n\nBye.\n"
	for _, raw := range []string{raw, strings.ReplaceAll(raw, "\n", "\r\n")} {
		got, err := readMail(t, mbox, raw)
		if err != nil || got.Text != want {
			t.Errorf("got %v:\n%s", err, cmp.Diff(want, got.Text))
		}
	}
}

func TestAttachmentsAreReadByTheirReaders(t *testing.T) {
	t.Parallel()
	attach := func(name, mediaType string, raw []byte) string {
		return mail("From: a\nSubject: x\nContent-Type: multipart/mixed; boundary=b", "--b\n\nhello\n--b\nContent-Type: "+
			mediaType+"\nContent-Disposition: attachment; filename=\""+name+"\"\nContent-Transfer-Encoding: base64\n\n"+
			b64(string(raw))+"\n--b--\n")
	}
	docx := archive("[Content_Types].xml", "<Types/>", "word/document.xml",
		`<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r>`+
			`<w:t>the contract</w:t></w:r></w:p></w:body></w:document>`)
	for claim, tt := range map[string]struct{ raw, want string }{
		"Word": {attach("c.docx", "application/octet-stream", docx), "## Attachment: c.docx\n\nthe contract\n"},
		"a name in another charset": {attach("=?utf-8?Q?=C3=9Cbersicht.csv?=", "text/csv", []byte("a;b\n")),
			"## Attachment: Übersicht.csv\n\na;b\n"},
		"PDF": {attach("p.pdf", "application/pdf", pdfFile(t)),
			"the lighthouse keeper answers on channel twelve"},
		"a picture": {attach("photo.png", "image/png", []byte(pngImage())), "[Not read: photo.png (image/png), "},
		"an archive": {attach("a.zip", "application/zip", []byte(zipOf("x"))),
			"[Not read: a.zip (application/zip), 128 bytes: Archives are not unpacked: upload the files in them]"},
		"a damaged document": {attach("c.docx", "application/octet-stream", docx[:len(docx)-30]), "[Not read: c.docx ("},
		"a mail": {attach("old.eml", "application/octet-stream", []byte("From: z\nSubject: old\n\nold text\n")),
			"## Attachment: old.eml\n\n## old\n\nFrom: z\n\nold text\n"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			got, err := readMail(t, message, tt.raw)
			if err != nil || !strings.HasPrefix(got.Text, "# x\n\nFrom: a\n\nhello\n\n") || !strings.Contains(got.Text,
				tt.want) {
				t.Errorf("got %v:\n%s\nwant a part %q", err, got.Text, tt.want)
			}
		})
	}
}

func TestAMailMayHaveSeveralPDFs(t *testing.T) {
	t.Parallel()
	part := "--b\nContent-Type: application/pdf; name=p.pdf\nContent-Transfer-Encoding: " +
		"base64\n\n" + b64(string(pdfFile(t))) + "\n"
	got, err := readMail(t, message, mail("From: a\nContent-Type: multipart/mixed; boundary=b", strings.Repeat(part,
		3)+"--b--\n"))
	const want = "the lighthouse keeper answers on channel twelve"
	if n := strings.Count(got.Text, want); err != nil || n != 3 {
		t.Errorf("%q is there %d times, %v, want 3", want, n, err)
	}
}

func TestASavedWebPageIsRead(t *testing.T) {
	t.Parallel()
	raw := mail("From: <Saved by Blink>\nSnapshot-Content-Location: https://example.com/a\nSubject: "+
		"=?utf-8?Q?Caf=C3=A9?=\n"+
		"MIME-Version: 1.0\nContent-Type: multipart/related;\n\ttype=\"text/html\";\n\tboundary=\"--b\"",
		"----b\nContent-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n"+
			"Content-Location: https://example.com/a\n\n<html><head><title>Caf=C3=A9</title></head><body><p "+
			"class=3D\"x\">menu=\n"+
			" of the day</p></body></html>\n----b\nContent-Type: text/css\n\nbody {}\n----b----\n")
	got, err := readMail(t, "multipart/related", raw)
	if err != nil || !strings.Contains(got.Text, "# Café\n") || !strings.Contains(got.Text, "menu of the day\n") ||
		!strings.Contains(got.Text, "Location: https://example.com/a\n") || strings.Contains(got.Text, "body {}") {
		t.Errorf("got %q, %v", got.Text, err)
	}
}

// A hostile message is read within limits.
func TestHostileMailIsBounded(t *testing.T) {
	t.Parallel()
	nested := "text"
	for range 3000 {
		nested = "Content-Type: message/rfc822\nFrom: a\n\n" + nested
	}
	deep := ""
	for range 2000 {
		deep += "Content-Type: multipart/mixed; boundary=b\n\n--b\n"
	}
	for claim, raw := range map[string]string{
		"messages in messages": nested, "parts in parts": deep,
		"very many parts":     "From: a\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\n", 1<<20),
		"very many fields":    strings.Repeat("a:b\n", 1<<20) + "\nx",
		"an endless field":    "Subject: " + strings.Repeat("=?utf-8?q?x?= ", 1<<18) + "\n\nx",
		"only a header":       "From: a",
		"only boundaries":     "From: a\nContent-Type: multipart/mixed; boundary=b\n\n--b--",
		"an empty boundary":   "From: a\nContent-Type: multipart/mixed; boundary=\"\"\n\n----\n\n--\nx",
		"broken Base64":       "From: a\nContent-Transfer-Encoding: base64\n\n====A=\xff=B==",
		"continuation blanks": "From: a\n" + strings.Repeat(" \n", 1<<18) + "\nx",
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			if got, err := readMail(t, message, raw); err != nil && !isUnreadable(err) {
				t.Errorf("got %.100q, %v", got.Text, err)
			} else if err == nil {
				checkMarkdown(t, got)
			}
		})
	}
}

func TestMailIsRecognized(t *testing.T) {
	t.Parallel()
	const head = "Received: by mx\nFrom: a\nSubject: x\n\nbody\n"
	binary := head + strings.Repeat("\x00\x01\xff", 2000)
	for _, tt := range []struct{ claim, file, declared, raw, want string }{
		{"a message by its extension", "a.eml", "", "Subject: x\n\nbody", message},
		{"a message with bytes that are no text", "a.EML", "", binary, message},
		{"a message of Apple Mail", "1.emlx", "", "40\n" + head, message},
		{"a mailbox by its extension", "all.mbox", "text/plain", "From a\nFrom: a\n\nbody\n", mbox},
		{"a mailbox without an extension", "Inbox", "", "From - Tue May 14\n" + head, mbox},
		{"a message without an extension", "1715.M1P2.host:2,S", "", head, message},
		{"a message as declared", "a", message, "Subject: x\n\nbody", message},
		{"a saved page", "a.mht", "", "From: x\nContent-Type: multipart/related\n\n", "multipart/related"},
		{"a saved page by its other extension", "a.mhtml", "", "From: x\n\n", "multipart/related"},
		{"a text that looks like a message", "a.txt", "", head, "text/plain"},
		{"a letter", "letter", "", "From my window\nI see: a tree\nand more\n", "text/plain"},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			if got, err := document.Sniff(tt.file, tt.declared, strings.NewReader(tt.raw),
				int64(len(tt.raw))); err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	if _, err := document.Sniff("a.eml", "", strings.NewReader(pngImage()), 99); err == nil {
		t.Error("a picture is accepted as a message")
	}
}

func TestMailSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	raw := mail("From: a\nSubject: x\nContent-Type: multipart/mixed; boundary=b", "--b\nContent-Type: "+
		"text/html\n\n<p>hello<svg></svg>\n"+
		"--b\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\n"+b64(pngImage())+"\n--b\nContent-Type: "+
		"image/png\nContent-Disposition: attachment; "+
		"filename=p.png\nContent-Transfer-Encoding: base64\n\n"+b64(pngImage())+"\n"+
		"--b\nContent-Type: application/zip; name=a.zip\nContent-Transfer-Encoding: base64\n\n"+b64(zipOf("x"))+
		"\n--b\nContent-Type: application/pkcs7-mime; name=smime.p7m\n\nx\n--b\nContent-Type: text/plain; name=n.txt\n\n"+
		"one long line of notes\x00\n--b--\n")
	got, err := readMail(t, message, raw)
	want := "3 pictures without text (attachment p.png), 1 attachment (attachment a.zip), 1 encrypted message " +
		"(attachment " +
		"smime.p7m), 1 NUL byte (attachment n.txt, line 1)"
	if said := document.ListOmissions(got.Omitted); err != nil || said != want {
		t.Errorf("got %q, %v, want %q", said, err, want)
	}
}

// The charset that an uploader names is that of the texts that do not say theirs.
func TestMailInAChosenCharset(t *testing.T) {
	t.Parallel()
	raw := "From: a\nSubject: \xf8\xed\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n\xf8\xed\n--b\n" +
		"Content-Type: text/plain; charset=iso-8859-5\n\n\xb5\xd6\n--b--\n"
	got, err := reader.Read(t.Context(), document.Input{MediaType: "message/rfc822", Charset: "windows-1250",
		SizeBytes: int64(len(raw)), Body: strings.NewReader(raw)})
	if want := "# ří\n\nFrom: a\n\nří\n\nЕж\n"; err != nil || got.Text != want {
		t.Errorf("got %q, %v, want %q", got.Text, err, want)
	}
}

// Files that stand in a text, as mail had them before MIME, are read as attachments.
func TestFilesInTheTextOfAMail(t *testing.T) {
	t.Parallel()
	raw := "From: a\n\nHere it is.\nbegin 644 plan.txt\n+2&5L;&\\@5&AE<F4*\n`\nend\nBye. begin 7 x\n\nbegin 644 p.png\n" +
		"8B5!.1PT*&@H````-24A$4@````$````!\n`\nend\n"
	got, err := reader.Read(t.Context(), document.Input{MediaType: "message/rfc822", SizeBytes: int64(len(raw)),
		Body: strings.NewReader(raw)})
	want := "From: a\n\nHere it is.\n[plan.txt]\nBye. begin 7 x\n\n[p.png]\n\n## Attachment: plan.txt\n\nHello There"
	if err != nil || !strings.Contains(got.Text, want) || !strings.Contains(document.ListOmissions(got.Omitted), "p.png") {
		t.Errorf("got %q, %v, omitted %v, want %q", got.Text, err, got.Omitted, want)
	}
}

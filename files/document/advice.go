package document

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
)

// advice returns a sentence that says what to upload instead of a file that is not read. The content decides before the
// name. It is empty if nothing is known to help.
func advice(extension, content string, body io.ReaderAt, size int64) string {
	if old, ok := errors.AsType[*UnreadableError](refuseOLE(body, size)); ok {
		return old.Reason
	}
	if startsAt(body, "\x78\x9f\x3e\x22") {
		return "It is a winmail.dat of Outlook. Open it in Outlook, save what is in it, and upload that."
	}
	isZip := isArchive[content]
	if a, err := openArchive(body, size); err == nil {
		isZip = true
		if said := a.advice(); said != "" {
			return said
		}
	}
	for _, known := range otherFormats {
		if known.isZip && !isZip {
			continue
		}
		if slices.Contains(strings.Fields(known.extensions), strings.TrimPrefix(extension, ".")) {
			return known.advice
		}
	}
	switch {
	case isZip && isPacked[extension]:
		return "By its name it is a document, but it is damaged or something else: " +
			"open it in the program that made it, and save it again."
	case isZip:
		return "Archives are not unpacked: upload the files in them."
	}
	return cmp.Or(adviceByType[content], adviceByType[strings.SplitAfter(content, "/")[0]])
}

// isPacked are extensions of documents that are zip files.
var isPacked = setOf(".docx .pptx .xlsx .odt .odp .ods .epub")

var isArchive = setOf(`application/zip application/java-archive application/vnd.android.package-archive application/gzip
	application/x-tar application/x-bzip2 application/x-xz application/zstd application/lzip application/x-7z-compressed
	application/vnd.rar application/x-archive application/x-cpio application/vnd.debian.binary-package application/x-rpm`)

const (
	saveAsXLSX  = "It is a binary workbook of Excel. Save it as .xlsx in Excel, and upload that."
	exportIWork = "It is a document of Apple's "
	transcribe  = "Sound is not read. Transcribe it, and upload the text."
	asCSV       = "Export its tables as CSV, and upload those."
)

// otherFormats are formats that are known by their names alone. isZip says that they are zip files.
var otherFormats = []struct {
	extensions string
	isZip      bool
	advice     string
}{
	{"pages", true, exportIWork + "Pages. Export it as Word or PDF, and upload that."},
	{"key", true, exportIWork + "Keynote. Export it as PowerPoint or PDF, and upload that."},
	{"numbers", true, exportIWork + "Numbers. Export it as Excel or CSV, and upload that."},
	{"xlsb", true, saveAsXLSX},
	{"one onetoc2", false, "It is a section of OneNote. Export it as PDF or Word in OneNote, and upload that."},
	{"onepkg", false, "It is a notebook of OneNote. Export it as PDF or Word in OneNote, and upload that."},
	{"mobi azw azw3 kfx prc", false, "It is a book for Kindle. Convert it to EPUB, for instance with Calibre, and " +
		"upload that."},
	{"lit lrf pdb", false, "It is a book in an old format. Convert it to EPUB, for instance with Calibre, and upload " +
		"that."},
	{"chm", false, "It is a help file. Convert it to EPUB or HTML, for instance with Calibre, and upload that."},
	{"djvu djv", false, "It is a scan in DjVu. Convert it to a PDF with text, by OCR if it has none, and upload that."},
	{"heic heif avif jxl", false, readPictures},
	{"pst ost olm", false, "It is a mailbox of Outlook. Export its messages as .eml or .mbox, and upload those."},
	{"msg oft", false, "It is a message of Outlook. Save it as .eml, or as text, and upload that."},
	{"vsd vss", false, "It is a drawing of Visio. " + exportPDF},
	{"pub", false, "It is a publication of Publisher. " + exportPDF},
	{"mpp", false, "It is a plan of Microsoft Project. Export it as Excel or PDF, and upload that."},
	{"accdb mdb sqlite sqlite3 db dbf", false, "It is a database. " + asCSV},
	{"parquet avro orc feather arrow sas7bdat sav dta rdata rds", false, "It is a table in a binary format. " + asCSV},
	{"dwg skp stl", false, "It is a technical drawing. " + exportPDF},
	{"wpd wps wri hwp cwk abw", false, "It is a document of another word processor. Save it as .docx or PDF, and upload " +
		"that."},
	{"indd ai psd cdr xcf afpub", false, "It is a layout or a picture of a graphics program. " + exportPDF},
	{"rar 7z zip tar gz tgz bz2 xz zst cab iso dmg arj lzh", false, "Archives are not unpacked: upload the files in " +
		"them."},
	{"mp3 wav m4a flac ogg opus aac wma mp4 m4v mov mkv avi webm wmv", false, transcribe},
	{"p7m p7s pgp gpg", false, "It is encrypted or signed. Decrypt it, and upload what it holds."},
}

// adviceByType maps media types, or their beginnings, to advice.
var adviceByType = map[string]string{
	"image/": readPictures, "audio/": transcribe, "video/": transcribe, "font/": "Fonts hold no text.",
	"image/vnd.djvu": "It is a scan in DjVu. Convert it to a PDF with text, by OCR if it has none, and " +
		"upload that.",
	"image/vnd.dwg":             "It is a technical drawing. " + exportPDF,
	"image/vnd.adobe.photoshop": "It is a layout or a picture of a graphics program. " + exportPDF,
	"application/x-mobipocket-ebook": "It is a book for Kindle. Convert it to EPUB, for instance with Calibre, and " +
		"upload that.",
	"application/vnd.sqlite3":        "It is a database. " + asCSV,
	"application/x-sqlite3":          "It is a database. " + asCSV,
	"application/x-msaccess":         "It is a database. " + asCSV,
	"application/vnd.apache.parquet": "It is a table in a binary format. " + asCSV,
	"application/onenote":            "It is a section of OneNote. Export it as PDF or Word in OneNote, and upload that.",
	"application/vnd.ms-outlook-pst": "It is a mailbox of Outlook. Export its messages as .eml or .mbox, and upload " +
		"those.",
}

// adviceInArchive returns what to do with a file that looks like a workbook of Excel, but is a binary one.
func adviceInArchive(media string, body io.ReaderAt, size int64) string {
	if media != ooxml+"spreadsheetml.sheet" {
		return ""
	}
	a, err := openArchive(body, size)
	if err != nil {
		return "" // its reader says why
	}
	return a.advice()
}

// advice returns what to do with a zip file that is a document of another format; "" if it is none.
func (a *archive) advice() string {
	declared := ""
	if a.has("mimetype") {
		raw, _ := a.readAll("mimetype") // if that fails, other entries tell
		declared = strings.TrimSpace(string(raw))
	}
	has := func(fits func(name string) bool) bool { return slices.ContainsFunc(a.names, fits) }
	in := func(folder string) bool {
		return has(func(name string) bool { return strings.HasPrefix(name, folder) })
	}
	switch {
	case a.has("xl/workbook.bin"):
		return saveAsXLSX
	case strings.HasPrefix(declared, opendocument+"graphics"):
		return "It is a drawing of OpenDocument. " + exportPDF
	case strings.HasPrefix(declared, opendocument+"formula"), strings.HasPrefix(declared, opendocument+"chart"):
		return "It is a formula or a chart of OpenDocument. " + exportPDF
	case strings.HasPrefix(declared, opendocument) && !isReadODF[strings.TrimPrefix(declared, opendocument)]:
		return "It is an OpenDocument file of a kind that is not read. " + exportPDF
	case declared == "application/hwp+zip":
		return "It is a document of Hancom. Save it as .docx or PDF, and upload that."
	case in("visio/"):
		return "It is a drawing of Visio. " + exportPDF
	case a.has("FixedDocSeq.fdseq") || a.has("FixedDocumentSequence.fdseq"):
		return "It is an XPS document. " + exportPDF
	}
	return ""
}

// isReadODF are the kinds of OpenDocument files that are read.
var isReadODF = setOf("text text-template text-web spreadsheet spreadsheet-template presentation presentation-template")

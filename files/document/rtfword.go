package document

// rtfStarred are the destinations that are read although a reader may skip them.
var rtfStarred = map[string]bool{
	"fldinst": true, "footnote": true, "cs": true, "shpinst": true, "shptxt": true, "listtext": true, "pntext": true,
}

// rtfIgnored are the destinations whose text is not the document's.
var rtfIgnored = map[string]bool{
	"colortbl": true, "info": true, "pict": true, "header": true, "headerl": true, "headerr": true, "headerf": true, "footer": true,
	"footerl": true, "footerr": true, "footerf": true, "listtable": true, "listoverridetable": true, "revtbl": true, "rsidtbl": true,
	"filetbl": true, "ftnsep": true, "ftnsepc": true, "ftncn": true, "aftnsep": true, "aftnsepc": true, "aftncn": true, "tc": true,
	"xe": true, "rxe": true, "txe": true, "nonshppict": true, "nonesttables": true, "nesttableprops": true, "shprslt": true, "sp": true,
	"annotation": true, "atnid": true, "atnauthor": true, "objdata": true, "bkmkstart": true, "bkmkend": true, "template": true,
	"pnseclvl": true, "xmlnstbl": true, "fontemb": true, "falt": true, "panose": true,
}

var rtfCharacters = map[string]string{
	"tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’",
	"ldblquote": "“", "rdblquote": "”", "enspace": " ", "emspace": " ", "qmspace": " ", "zwj": "\u200d", "zwnj": "\u200c",
}

// rtfCharsets are those of fonts, by \fcharset.
var rtfCharsets = map[int]string{
	2: "symbol", 77: "macintosh", 128: "shift_jis", 129: "euc-kr", 134: "gbk", 136: "big5", 161: "windows-1253", 162: "windows-1254",
	163: "windows-1258", 177: "windows-1255", 178: "windows-1256", 186: "windows-1257", 204: "windows-1251", 222: "windows-874",
	238: "windows-1250",
}

// rtfCodepages are those of a whole document, by \ansicpg.
var rtfCodepages = map[int]string{
	932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5", 874: "windows-874", 866: "ibm866", 10000: "macintosh", 65001: "utf-8",
	1250: "windows-1250", 1251: "windows-1251", 1252: "windows-1252", 1253: "windows-1253", 1254: "windows-1254", 1255: "windows-1255",
	1256: "windows-1256", 1257: "windows-1257", 1258: "windows-1258",
}

// do obeys a control word. given tells whether n was there.
func (t *rtfText) do(word string, n int, given bool) {
	on := !given || n != 0
	if s, ok := rtfCharacters[word]; ok {
		t.character(s)
		return
	}
	if rtfIgnored[word] {
		t.state.dest = rtfSkipped
		return
	}
	if t.state.dest == rtfSkipped || t.destination(word) || t.paragraphWord(word, n) {
		return
	}
	switch word {
	case "mac":
		t.charset = "macintosh"
	case "ansicpg":
		t.charset = rtfCodepages[n]
	case "f":
		t.state.font = n
	case "fcharset":
		t.fonts[t.state.font] = rtfFont{charset: rtfCharsets[n], code: t.fonts[t.state.font].code}
	case "fmodern":
		t.fonts[t.state.font] = rtfFont{charset: t.fonts[t.state.font].charset, code: true}
	case "plain":
		t.state.rtfLook = rtfLook{}
	case "v":
		t.state.hidden = on
	case "deleted":
		t.state.deleted = on
	case "strike", "striked":
		t.state.struck = on
	case "super":
		t.state.raised = on
	case "sub", "nosupersub":
		t.state.raised = false
	case "cs":
		t.state.isCode = t.codeStyles[n]
		t.entryChar = n
	}
}

// character adds one that has a word of its own. A line end is kept in a paragraph.
func (t *rtfText) character(s string) {
	if t.state.dest != rtfBody {
		t.text(s)
	} else if !t.state.hidden && !t.state.deleted {
		t.sink().para.add(s, t.look())
	}
}

// destination obeys the words that say where a group's text goes.
func (t *rtfText) destination(word string) bool {
	switch word {
	case "fonttbl":
		t.state.dest = rtfFonts
	case "stylesheet":
		t.state.dest = rtfStyles
	case "listtext", "pntext":
		t.state.dest = rtfListMark
		t.sink().mark = ""
	case "field":
		t.state.field = &field{}
	case "fldinst":
		t.state.dest = rtfInstruction
	case "fldrslt":
		if f := t.state.field; f != nil {
			f.href = hyperlink(f.instruction)
		}
	case "footnote":
		t.nested(rtfNote, newFlat(t.budget))
	case "shptxt":
		t.nested(rtfBox, newMarkdown(t.budget))
	case "shpinst":
	default:
		return false
	}
	return true
}

func (t *rtfText) nested(opens rtfOpens, md *markdown) {
	if t.state.opens != rtfNothing {
		return
	}
	t.push(md)
	t.state.opens, t.state.field = opens, nil
	t.state.rtfLook, t.state.rtfPlace = rtfLook{}, rtfPlace{outline: -1}
}

// paragraphWord obeys the words for paragraphs, tables and styles.
func (t *rtfText) paragraphWord(word string, n int) bool {
	switch word {
	case "par", "sect", "page", "column":
		t.endParagraph()
	case "cell":
		t.endCell()
	case "nestcell", "nestrow":
		t.endParagraph()
	case "row":
		t.endRow()
	case "trowd":
		t.edges = nil
	case "cellx":
		if len(t.edges) < maxColumns {
			t.edges = append(t.edges, n)
		}
	case "pard":
		t.state.rtfPlace = rtfPlace{outline: -1}
	case "intbl":
		t.state.inTable = true
	case "outlinelevel":
		t.state.outline, t.entry.outline = n, n
	case "ilvl":
		t.state.level = min(max(n, 0), maxListLevels-1)
	case "li":
		t.state.indent = n
	case "fi":
		t.state.first = n
	case "s":
		t.state.style = n
		t.beginStyle(-1)
	case "cs":
		if t.state.dest != rtfStyles {
			return false
		}
		t.beginStyle(n)
	default:
		return false
	}
	return true
}

// beginStyle begins an entry of the table of styles, char for one of characters.
func (t *rtfText) beginStyle(char int) {
	if t.state.dest == rtfStyles {
		t.state.opens, t.entry, t.entryChar, t.name = rtfStyleEntry, rtfStyle{outline: -1}, char, ""
	}
}

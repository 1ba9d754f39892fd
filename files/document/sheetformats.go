package document

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// Formats of Excel by number: General, text, a date, and a date with a time. As General the library shows 11 digits of
// a number, as text all of them.
const (
	generalFormat  = 0
	textFormat     = 49
	dateFormat     = 14
	dateTimeFormat = 22
)

// sheetFormats are the formats of a workbook that the library shows wrongly.
type sheetFormats struct {
	formats []numberFormat
	days    int // by which the workbook's calendar begins after 1900
}

// mendFormats gives number formats that the library does not know a meaning that it knows, and returns those that
// it shows wrongly.
func mendFormats(book *excelize.File) (all *sheetFormats) {
	all = &sheetFormats{}
	if props, err := book.GetWorkbookProps(); err == nil && props.Date1904 != nil && *props.Date1904 {
		all.days = 1462
	}
	if book.Styles == nil || book.Styles.CellXfs == nil {
		return all
	}
	own := map[int]bool{}
	if book.Styles.NumFmts != nil {
		for _, f := range book.Styles.NumFmts.NumFmt {
			own[f.NumFmtID] = true
			f.FormatCode, f.FormatCode16 = all.mended(f.FormatCode), all.mended(f.FormatCode16)
		}
	}
	for i := range book.Styles.CellXfs.Xf {
		f := book.Styles.CellXfs.Xf[i].NumFmtID
		switch {
		case f == nil:
			book.Styles.CellXfs.Xf[i].NumFmtID = new(textFormat)
		case own[*f]:
		case *f == generalFormat:
			*f = textFormat
		case slices.Contains(eastTimes, *f):
			*f = dateTimeFormat
		case *f >= 27 && *f <= 36 || *f >= 50 && *f <= 58:
			*f = dateFormat
		case builtIn[*f] != "":
			*f = all.own(book, builtIn[*f])
		}
	}
	return all
}

// builtIn are the formats by number that the library shows wrongly.
var builtIn = map[int]string{12: "# ?/?", 13: "# ??/??", 46: "[h]:mm:ss", 47: "mm:ss.0"}

// own adds a format to those of the workbook, and returns its number.
func (all *sheetFormats) own(book *excelize.File, code string) int {
	styles := book.Styles
	if styles.Fonts == nil || styles.Fills == nil || styles.Borders == nil {
		return textFormat
	}
	mended := all.mended(code)
	added, err := book.NewStyle(&excelize.Style{CustomNumFmt: &mended})
	if err != nil || added >= len(styles.CellXfs.Xf) || styles.CellXfs.Xf[added].NumFmtID == nil {
		return textFormat
	}
	return *styles.CellXfs.Xf[added].NumFmtID
}

// Marks around the index of one of sheetFormats, before the number that it is to show.
const beginFormat, endFormat = "\ue000", "\ue001"

// mended returns a format that the library shows rightly. For one that it shows wrongly, that is a number with marks,
// which shown replaces.
func (all *sheetFormats) mended(code string) string {
	code = withLanguage(code)
	f := misread(code)
	if f == nil {
		return plainGeneral(code)
	}
	mark := fmt.Sprintf(`"%s%d%s"`, beginFormat, len(all.formats), endFormat)
	all.formats = append(all.formats, f)
	const digits = "0.###############"
	return mark + digits + ";" + mark + "-" + digits
}

// shown returns the text of a cell with what its marks stand for.
func (all *sheetFormats) shown(cell string) string {
	rest, marked := strings.CutPrefix(cell, beginFormat)
	index, digits, ends := strings.Cut(rest, endFormat)
	i, notIndex := strconv.Atoi(index)
	value, notNumber := strconv.ParseFloat(digits, 64)
	if !marked || !ends || notIndex != nil || notNumber != nil || i < 0 || i >= len(all.formats) {
		return cell
	}
	return all.formats[i].show(value, all.days)
}

// eastTimes are the formats 27–36 and 50–58 that are times in some languages of East Asia and dates in others. The rest
// are dates in all.
var eastTimes = []int{32, 33, 34, 35, 55, 56}

var (
	general      = regexp.MustCompile(`(?i)general`)
	formatPieces = regexp.MustCompile(`"[^"]*"|\\.|[^"\\]+|.`) // what is shown as it stands, and the rest
)

// plainGeneral returns a number format without General. Next to something else, such as General" pcs", the library
// shows the number alone.
func plainGeneral(code string) string {
	if strings.EqualFold(strings.TrimSpace(code), "general") {
		return "@"
	}
	return formatPieces.ReplaceAllStringFunc(code, func(piece string) string {
		if piece[0] == '"' || piece[0] == '\\' {
			return piece
		}
		return general.ReplaceAllString(piece, "0.##########")
	})
}

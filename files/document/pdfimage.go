package document

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/gabriel-vasile/mimetype"
	"github.com/klippa-app/go-pdfium/requests"
)

// Size of the picture of a page. OCR wants 300 dots per inch; a large page gets fewer.
const (
	imageDPI      = 300
	maxImageDots  = 20_000_000
	MaxImageBytes = 64 << 20 // of a page's picture, as PNG
)

// Image returns a page of a PDF, from 1, as a picture in shades of gray (PNG).
func (r Ready) Image(input Input, page int) ([]byte, error) {
	return r.pagePicture(input, page, nil)
}

// pagePicture returns a page of a PDF, or the part of it in a box.
func (r Ready) pagePicture(input Input, page int, within *box) ([]byte, error) {
	if r.engine == nil {
		return nil, unreadable("The document has no pages that could be shown.")
	}
	defer r.engine.close()
	body, err := input.seekable()
	if err != nil {
		return nil, err
	}
	opened, err := r.engine.OpenDocument(&requests.OpenDocument{FileReader: body, FileReaderSize: input.SizeBytes})
	if err != nil {
		return nil, pdfRefusal(err)
	}
	at := requests.Page{ByIndex: &requests.PageByIndex{Document: opened.Document, Index: page - 1}}
	size, err := r.engine.GetPageSize(&requests.GetPageSize{Page: at})
	if err != nil {
		return nil, unreadable("Page %d of the PDF is damaged.", page)
	}
	const pointsPerInch = 72
	area := max(1, size.Width*size.Height) / (pointsPerInch * pointsPerInch) // square inches
	shown, err := r.engine.RenderPageInDPI(&requests.RenderPageInDPI{Page: at,
		DPI: int(min(imageDPI, math.Sqrt(maxImageDots/area)))})
	if err != nil {
		return nil, unreadable("Page %d of the PDF is damaged.", page)
	}
	defer shown.Cleanup()
	bounds := shown.Result.Image.Bounds()
	if within != nil {
		if bounds, err = r.engine.dots(at, *within, bounds); err != nil {
			return nil, err
		}
	}
	gray := image.NewGray(image.Rect(0, 0, bounds.Dx(), bounds.Dy()))
	draw.Draw(gray, gray.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(gray, gray.Bounds(), shown.Result.Image, bounds.Min, draw.Over)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, gray); err != nil {
		return nil, fmt.Errorf("write the picture of page %d: %w", page, err)
	}
	return out.Bytes(), nil
}

// dots returns where a box of a page is on the picture of the page.
func (e *engine) dots(page requests.Page, b box, picture image.Rectangle) (image.Rectangle, error) {
	var found image.Rectangle
	for i, corner := range [2][2]float64{{b.left, b.bottom}, {b.right, b.top}} {
		at, err := e.FPDF_PageToDevice(&requests.FPDF_PageToDevice{Page: page, SizeX: picture.Dx(), SizeY: picture.Dy(),
			PageX: corner[0], PageY: corner[1]})
		if err != nil {
			return found, unreadable("The place of a picture in the PDF is damaged.")
		}
		if found.Max = image.Pt(at.DeviceX, at.DeviceY); i == 0 {
			found.Min = found.Max
		}
	}
	if found = found.Canon().Intersect(picture); found.Empty() {
		return found, unreadable("A picture in the PDF is not on its page.")
	}
	return found, nil
}

// Picture returns a picture in a document, by its Part, as a file of a format that PictureType knows.
func (r Ready) Picture(input Input, part string) ([]byte, error) {
	var raw []byte
	var err error
	switch {
	case input.IsPDF():
		var page int
		var b box
		if _, err := fmt.Sscanf(part, "%d %f %f %f %f", &page, &b.left, &b.bottom, &b.right, &b.top); err != nil {
			return nil, unreadable("The PDF has no such picture.")
		}
		return r.pagePicture(input, page, &b)
	case input.IsHTML():
		raw, err = htmlPicture(input, part)
	default:
		raw, err = packedPicture(input, part)
	}
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxImageBytes || PictureType(raw) == "" {
		return nil, unreadable("A picture of the document is larger than %d MiB, or in another format than its name says.",
			MaxImageBytes>>20)
	}
	return raw, nil
}

// PictureType returns the extension of the file of a picture by its bytes; "" for what OCR does not read.
func PictureType(raw []byte) string {
	return Input{MediaType: bareType(mimetype.Detect(raw[:min(len(raw), sniffBytes)]).String())}.PictureExtension()
}

// packedPicture returns a picture in an archive.
func packedPicture(input Input, part string) ([]byte, error) {
	body, err := input.seekable()
	if err != nil {
		return nil, err
	}
	a, err := openArchive(body, input.SizeBytes)
	if err != nil {
		return nil, err
	}
	packed, err := a.open(part)
	if err != nil {
		return nil, explain(err, a.source.failed)
	}
	defer packed.Close() //nolint:errcheck // read only
	raw, err := io.ReadAll(io.LimitReader(packed, MaxImageBytes+1))
	if err != nil {
		return nil, explain(err, a.source.failed)
	}
	return raw, nil
}

// htmlPicture returns a picture that stands in a page, by its number.
func htmlPicture(input Input, part string) ([]byte, error) {
	raw, err := input.bytes()
	if err != nil {
		return nil, err
	}
	p, err := decodePlain(raw, DeclaredCharset(input.MediaType, "", raw), input.Charset)
	if err != nil {
		return nil, err
	}
	if _, err := readHTML(p.text, &p.omitted); err != nil {
		return nil, err
	}
	index, err := strconv.Atoi(part)
	if err != nil || index < 0 || index >= len(p.omitted.html.data) {
		return nil, unreadable("The page has no such picture.")
	}
	head, data, _ := strings.Cut(p.omitted.html.data[index], ",")
	if unescaped, err := url.PathUnescape(data); err == nil {
		data = unescaped
	}
	if !strings.HasSuffix(strings.ToLower(strings.TrimSpace(head)), ";base64") {
		return []byte(data), nil
	}
	data = strings.TrimRight(strings.Join(strings.Fields(data), ""), "=")
	decoded, err := base64.RawStdEncoding.DecodeString(data)
	if err != nil {
		return nil, unreadable("A picture of the page is damaged.")
	}
	return decoded, nil
}

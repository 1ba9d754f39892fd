package document

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math"

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
	gray := image.NewGray(shown.Result.Image.Bounds())
	draw.Draw(gray, gray.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(gray, gray.Bounds(), shown.Result.Image, gray.Bounds().Min, draw.Over)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, gray); err != nil {
		return nil, fmt.Errorf("write the picture of page %d: %w", page, err)
	}
	return out.Bytes(), nil
}

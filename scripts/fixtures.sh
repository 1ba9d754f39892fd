#!/bin/sh
# Makes the office documents that files/document is tested with, from testdata/office/source, by pandoc and LibreOffice.
# Debian: apt-get install --no-install-recommends pandoc libreoffice-writer libreoffice-calc libreoffice-impress
set -eu
cd "$(dirname "$0")/../files/document/testdata/office"
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
export SOURCE_DATE_EPOCH=1767225600

convert() { # format, source, outcome
	soffice "-env:UserInstallation=file://$profile" --headless --convert-to "$1" --outdir "$profile/out" "$2" >/dev/null 2>&1
	name=$(basename "$2")
	mv "$profile/out/${name%.*}.$1" "$3"
}

for format in docx odt epub; do
	pandoc --standalone -o "pandoc.$format" source/rich.md
done
pandoc --standalone -o pandoc.pptx source/slides.md
pandoc --standalone -o pandoc.ipynb source/notebook.md

convert odt source/report.fodt libreoffice.odt
convert docx source/report.fodt libreoffice.docx
convert epub source/report.fodt libreoffice.epub
convert xlsx source/books.fods libreoffice.xlsx
convert ods source/books.fods libreoffice.ods
convert odp source/talk.fodp libreoffice.odp
convert pptx source/talk.fodp libreoffice.pptx
convert odp pandoc.pptx slides.odp
convert pptx pandoc.pptx slides.pptx

#include "blob/xml.h"

#include <gtest/gtest.h>

namespace slipway::blob {
namespace {

// The name of the one blob of a page, as the XML between <Name> and </Name> is read.
std::string name_of(const std::string& inner) {
  const auto page =
      parse_blob_page("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<EnumerationResults><Blobs><Blob><Name>" + inner +
                      "</Name><Properties><Content-Length>1</Content-Length></Properties></Blob></Blobs>"
                      "</EnumerationResults>\n");
  return page ? page->blobs.at(0).name : "!" + page.error().what;
}

TEST(Xml, DecodesText) {
  EXPECT_EQ(name_of("t<!-- no -->u&#65;&#x20AC;"), "tuA\u20ac");
  EXPECT_EQ(name_of("a &amp;&quot;&apos;&gt; <![CDATA[<&>]]>"), "a &\"'> <&>");
  EXPECT_EQ(name_of(" "), " ");
  EXPECT_EQ(name_of("a<b>not this</b>"), "a");
}

TEST(Xml, RefusesMalformedDocuments) {
  for (const char* wrong : {"", "text", "<a>", "<a></b>", "</a>", "<a x></a>", "<a x=1/>", "<a x='1></a>",
                            "< a/>", "<a><!-- </a>", "<a><![CDATA[</a>", "<?xml <a/>"}) {
    SCOPED_TRACE(wrong);
    const auto page = parse_blob_page(wrong);
    ASSERT_FALSE(page);
    EXPECT_EQ(page.error().code, ErrorCode::invalid);
  }
}

TEST(Xml, RefusesDoctypeDepthAndSize) {
  const std::string tail = "<EnumerationResults/>";
  EXPECT_TRUE(parse_blob_page(tail));
  EXPECT_FALSE(parse_blob_page("<!DOCTYPE a [<!ENTITY x 'y'>]>" + tail));
  const auto nested = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += "<a>";
    for (int i = 0; i < levels; ++i) text += "</a>";
    return "<EnumerationResults>" + text + "</EnumerationResults>";
  };
  EXPECT_TRUE(parse_blob_page(nested(xml_depth_max - 1)));
  EXPECT_FALSE(parse_blob_page(nested(xml_depth_max)));
  EXPECT_FALSE(parse_blob_page(nested(500'000)));
  EXPECT_EQ(parse_blob_page(tail + std::string(xml_size_max, ' ')).error().code, ErrorCode::too_large);
}

TEST(Xml, ReadsAListOfBlobs) {
  const auto page = parse_blob_page(R"(<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="https://lab.blob.core.windows.net/" ContainerName="data"><Prefix/><Blobs>
<Blob><Name>a &amp; b/c.txt</Name><Properties><Last-Modified>Mon, 02 Mar 2026 10:00:00 GMT</Last-Modified>
<Etag>0x8D1</Etag><Content-Length>12</Content-Length><Content-MD5>1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5></Properties></Blob>
<Blob><Name Encoded="true">x%EF%BF%BE</Name><Properties><Etag>"0x8D2"</Etag><Content-Length>0</Content-Length>
<Content-MD5 /></Properties><Metadata><Name>not this</Name></Metadata></Blob>
</Blobs><NextMarker>2!92!x</NextMarker></EnumerationResults>)");
  ASSERT_TRUE(page) << page.error().what;
  EXPECT_EQ(page->blobs, (std::vector<BlobInfo>{{"a & b/c.txt", "0x8D1", 12, "1B2M2Y8AsgTpgAmY7PhCfg=="},
                                                {"x\xef\xbf\xbe", "0x8D2", 0, ""}}));
  EXPECT_EQ(page->next_marker, "2!92!x");
  EXPECT_TRUE(parse_blob_page("<EnumerationResults><Blobs/></EnumerationResults>").value().blobs.empty());
}

TEST(Xml, RefusesAnotherAnswer) {
  const std::string head = "<EnumerationResults><Blobs><Blob>", tail = "</Blob></Blobs></EnumerationResults>";
  for (const std::string& wrong :
       {std::string("<html/>"), std::string("<EnumerationResults>"), head + tail,
        head + "<Name>a</Name>" + tail,
        head + "<Properties><Content-Length>1</Content-Length></Properties>" + tail,
        head + "<Name>a</Name><Properties><Content-Length>-1</Content-Length></Properties>" + tail,
        head + "<Name Encoded='true'>%z</Name>" + tail})
    EXPECT_FALSE(parse_blob_page(wrong)) << wrong;
}

TEST(Xml, ReadsErrors) {
  const StoreError error = parse_store_error(
      "<?xml version=\"1.0\"?><Error><Code>AuthenticationFailed</Code><Message>Server "
      "failed.\nRequestId:1</Message></Error>");
  EXPECT_EQ(error.code, "AuthenticationFailed");
  EXPECT_EQ(error.message, "Server failed.");
  EXPECT_EQ(parse_store_error("Bad gateway").code, "");
}

}  // namespace
}  // namespace slipway::blob

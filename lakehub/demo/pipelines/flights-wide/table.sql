CREATE TABLE flights_wide (
  flight_date STRING,
  carrier STRING,
  flight INT,
  origin STRING,
  dest STRING,
  dest_name STRING,
  dest_timezone STRING,
  status STRING,
  arr_delay INT,
  tailnum STRING,
  manufacturer STRING,
  model STRING,
  seats INT,
  weather_id BIGINT,
  temp DOUBLE,
  wind_speed DOUBLE,
  visib DOUBLE
)
